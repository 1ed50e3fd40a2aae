// Any bytes are either a snapshot, up to where they stop making sense, or an error, to two threads as to one; and a
// snapshot can be analysed.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/chunk.h"
#include "heap/dominators.h"
#include "heap/memory_view.h"
#include "heap/paths.h"
#include "heap/snapshot_format.h"
#include "heap/snapshot_reader.h"
#include "heap/suspects.h"
#include "heap/views.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::heap;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  // Once as a file, and once as the raw bytes of a chunk, which random changes would not get past the checksum with.
  std::string file{file::kMagic};
  plimsoll::put_u16(file, file::kMajorVersion);
  plimsoll::put_u16(file, file::kMinorVersion);
  for (const std::string& input : {bytes, file + plimsoll::make_chunk(bytes, file::kCompressionLevel)}) {
    const auto snapshot = read_snapshot(input, ReadBeside::kNever);
    if (!snapshot.ok()) continue;
    const Snapshot& heap = snapshot.value();
    const Snapshot beside = read_snapshot(input, ReadBeside::kAlways).take();
    const bool is_same = beside.type == heap.type && beside.graph.first == heap.graph.first &&
                         beside.graph.targets == heap.graph.targets && beside.kind == heap.kind &&
                         beside.weak == heap.weak && beside.complete == heap.complete;
    if (!is_same) __builtin_trap();
    const DominatorTree tree = dominator_tree(heap.graph, heap.root());
    if (tree.order.size() != heap.type.size()) __builtin_trap();  // the root reaches everything
    (void)retained_sizes(tree, heap.size);
    const View view{{ViewStage::Kind::kMemory, {}},
                    {ViewStage::Kind::kParts, {}},
                    {ViewStage::Kind::kModule, {}},
                    {ViewStage::Kind::kRules, {{"a*", {"*"}}, {"*", {"b"}}}}};
    const Snapshot all = with_memory(heap);
    if (dominator_tree(all.graph, all.root()).order.size() != all.type.size()) __builtin_trap();
    const Snapshot seen = seen_as(heap, view);
    if (seen.type.size() > all.type.size() || seen.graph.size() != seen.type.size()) __builtin_trap();
    for (const Suspect& suspect : suspects(seen, dominance(seen), 0.1))
      if (suspect.node != kNoNode) (void)describe(seen, suspect.node);
    for (const auto& path : paths_to(heap.graph, heap.root(), 0, 3))
      for (const Step& step : path) (void)(describe(heap, step.node) + describe_edge(heap, step.node, step.edge));
  }
  return 0;
}
