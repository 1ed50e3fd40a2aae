// jitlog/query.cc: recursive descent to a list of steps, and a stack that runs them.
#include "jitlog/query.h"

#include <algorithm>
#include <charconv>

namespace plimsoll::jitlog {

// Reads a text from left to right; the first problem ends it.
class QueryParser {
 public:
  explicit QueryParser(std::string_view text) : text_(text) {}

  Result<Query> parse() {
    skip_blanks();
    if (at_ == text_.size()) return Query{};
    if (either() && at_ < text_.size())
      expected(text_[at_] == ')' ? "no \")\", as none is open" : R"("&", "|" or the end)");
    if (!problem_.empty()) return Error{ErrorKind::kUsage, problem_};
    return std::move(query_);
  }

 private:
  static constexpr std::size_t kDeepest = 100;
  using Step = Query::Step;

  // Each is false after a problem.
  bool either() {
    if (!both()) return false;
    while (accept("|")) {
      if (!both()) return false;
      query_.steps_.push_back({Step::kOr, {}, {}, 0});
    }
    return true;
  }
  bool both() {
    if (!negated()) return false;
    while (accept("&")) {
      if (!negated()) return false;
      query_.steps_.push_back({Step::kAnd, {}, {}, 0});
    }
    return true;
  }
  bool negated() {
    bool is_negated = false;
    while (accept("~")) is_negated = !is_negated;
    if (!primary()) return false;
    if (is_negated) query_.steps_.push_back({Step::kNot, {}, {}, 0});
    return true;
  }
  bool primary() {
    if (depth_ == kDeepest) return expected("at most 100 parentheses inside one another");
    if (accept("(")) {
      ++depth_;
      const bool is_closed = either() && (accept(")") || expected("\")\""));
      --depth_;
      return is_closed;
    }
    const std::size_t start = at_;
    const std::string_view word = take_word();
    if (word == "loops") return kind(Step::kLoops);
    if (word == "bridges") return kind(Step::kBridges);
    if (word == "op") return call(Step::kOperation);
    if (word == "func") return call(Step::kFunction);
    if (word == "file") return call(Step::kFile);
    if (word == "count") return count();
    at_ = start;
    return expected(R"(loops, bridges, op(), func(), file(), count, "~" or "(")");
  }

  bool kind(Step step) {
    query_.steps_.push_back({step, {}, {}, 0});
    return !accept("(") || accept(")") || expected("\")\"");
  }
  bool call(Step step) {
    std::string text;
    if (!(accept("(") || expected("\"(\"")) || !quoted(text)) return false;
    query_.steps_.push_back({step, {}, std::move(text), 0});
    return accept(")") || expected("\")\"");
  }
  bool quoted(std::string& text) {
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') return expected("a text in quotes");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return expected("a text with a quote at its end too");
    text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    skip_blanks();
    return true;
  }
  bool count() {
    using Comparison = Query::Comparison;
    Query::Instruction step{Step::kCount, {}, {}, 0};
    if (accept(">="))
      step.comparison = Comparison::kMoreOrEqual;
    else if (accept("<="))
      step.comparison = Comparison::kLessOrEqual;
    else if (accept("=="))
      step.comparison = Comparison::kEqual;
    else if (accept("!="))
      step.comparison = Comparison::kUnequal;
    else if (accept(">"))
      step.comparison = Comparison::kMore;
    else if (accept("<"))
      step.comparison = Comparison::kLess;
    else
      return expected("one of > >= < <= == !=");
    const std::string_view digits = text_.substr(at_, text_.find_first_not_of("0123456789", at_) - at_);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step.number);
    if (error != std::errc{}) return expected("a number");
    at_ += digits.size();
    skip_blanks();
    query_.steps_.push_back(std::move(step));
    return true;
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\n", at_), text_.size()); }
  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip_blanks();
    return true;
  }
  std::string_view take_word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && ((text_[at_] >= 'a' && text_[at_] <= 'z') || text_[at_] == '_')) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    skip_blanks();
    return word;
  }
  bool expected(std::string_view what) {
    const std::string found =
        at_ < text_.size() ? "\"" + std::string(text_.substr(at_, std::min<std::size_t>(20, text_.size() - at_))) + "\""
                           : "the end";
    problem_ = "the query, column " + std::to_string(at_ + 1) + ": expected " + std::string(what) + ", found " + found;
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  Query query_;
  std::string problem_;
};

Result<Query> Query::parse(std::string_view text) { return QueryParser(text).parse(); }

bool Query::matches(const Forest& forest, const Trace& trace) const {
  std::vector<bool> results;
  for (const Instruction& one : steps_) {
    if (one.step == Step::kNot) {
      results.back() = !results.back();
    } else if (one.step == Step::kAnd || one.step == Step::kOr) {
      const bool right = results.back();
      results.pop_back();
      results.back() = one.step == Step::kAnd ? results.back() && right : results.back() || right;
    } else {
      results.push_back(test(one, forest, trace));
    }
  }
  return results.empty() || results.back();
}

bool Query::test(const Instruction& one, const Forest& forest, const Trace& trace) {
  const auto holds = [&](std::string_view text) { return text.find(one.text) != std::string_view::npos; };
  const auto any_place = [&](auto text_of) {
    const std::vector<MergePoint>& places = trace.stage(StageKind::kRecorded).merge_points;
    return std::any_of(places.begin(), places.end(), [&](const MergePoint& place) { return holds(text_of(place)); });
  };
  const std::uint64_t runs = trace.runs();
  switch (one.step) {
    case Step::kLoops: return trace.kind == Trace::Kind::kLoop;
    case Step::kBridges: return trace.kind == Trace::Kind::kBridge;
    case Step::kFunction: return any_place([](const MergePoint& place) { return std::string_view(place.function); });
    case Step::kFile: return any_place([](const MergePoint& place) { return std::string_view(place.file); });
    case Step::kOperation:
      return std::any_of(trace.stages.begin(), trace.stages.end(), [&](const Stage& stage) {
        return std::any_of(stage.operations.begin(), stage.operations.end(),
                           [&](const Operation& operation) { return holds(forest.name_of(operation)); });
      });
    case Step::kCount: break;
    default: return false;
  }
  switch (one.comparison) {
    case Comparison::kMore: return runs > one.number;
    case Comparison::kMoreOrEqual: return runs >= one.number;
    case Comparison::kLess: return runs < one.number;
    case Comparison::kLessOrEqual: return runs <= one.number;
    case Comparison::kEqual: return runs == one.number;
    case Comparison::kUnequal: return runs != one.number;
  }
  return false;
}

}  // namespace plimsoll::jitlog
