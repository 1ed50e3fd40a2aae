// formats/chrometrace/sampled.h: the samples in a trace -> samples of a profile.
#pragma once

#include <boost/json.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <map>
#include <string>
#include <vector>

#include "formats/cpuprofile/call_tree.h"
#include "formats/foreign.h"

namespace plimsoll::formats::chrometrace {

// The samples of one thread, until it is known when each ends.
class ThreadSamples {
 public:
  void add(double at_us, StackId stack) { rows_.push_back({at_us, stack}); }
  void end_at(double at_us) { end_us_ = at_us; }
  // Each sample weighs the time to the next one; the last one, the time to the end, if that is known.
  void write(ForeignProfile& out, ThreadId thread, double zero_us);

 private:
  // A sample.
  struct Row {
    double at_us;
    StackId stack;
  };
  std::vector<Row> rows_;
  double end_us_ = 0;
};

// What V8 samples: a "Profile" of a thread, which comes in "ProfileChunk"s from any thread; or a "CpuProfile" at once.
class SampledProfiles {
 public:
  explicit SampledProfiles(ForeignProfile& out) : out_(out) {}

  // `key` names the profile, `thread` is where the event is. In order of time.
  void begin(const std::string& key, ThreadId thread, double start_us);
  void chunk(const std::string& key, ThreadId thread, const boost::json::value* data, double at_us);
  void write(double zero_us);

 private:
  // One of them.
  struct Sampled {
    ThreadId thread;
    cpuprofile::CallTree tree;
    double start_us;
    double at_us;
    ThreadSamples samples;
  };
  Sampled& at(const std::string& key, ThreadId thread, double start_us);

  ForeignProfile& out_;
  std::map<std::string, Sampled> profiles_;
};

// The trace's own table of stack frames, of which events and rows name one.
class StackFrames {
 public:
  // `table` is the member "stackFrames"; it may be anything.
  StackFrames(ForeignProfile& out, const boost::json::value* table);
  // The stack that ends with the frame of an id, a number or a text.
  StackId stack_of(const boost::json::value* frame);

 private:
  cpuprofile::CallTree::NodeId number_of_id(const std::string& id);

  cpuprofile::CallTree tree_;
  boost::unordered_flat_map<std::string, cpuprofile::CallTree::NodeId> ids_;
};

}  // namespace plimsoll::formats::chrometrace
