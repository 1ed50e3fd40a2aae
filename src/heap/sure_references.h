// heap/sure_references.h: a word that may be a reference is one only where its object's count has room for it: a linked
// list of objects that a dict holds, as functools.lru_cache has one, points from each to the next and holds none.
#pragma once

#include <cstdint>
#include <vector>

#include "heap/address_set.h"
#include "heap/image_edges.h"

namespace plimsoll::heap {

// Counts the references that are sure, between the objects of a set. Those of roots are left out: some of them borrow
// what another one holds. A sink for ImageEdges.
class SureReferences {
 public:
  SureReferences(const ImageView& view, ImageTypes& types, const KeptDicts& kept, const AddressSet& found)
      : types_(types), found_(found), counts_(found.size()) {
    ImageEdges<SureReferences> edges(view, kept, *this);
    found.for_each([&](Address object) {
      if (const ImageType* type = types.of_object(object); type != nullptr) edges.visit(object, *type);
    });
  }

  // Whether an object's count has room for one more, which is taken then. True where the count is not known.
  bool take_room(Address held, Node target) {
    const std::uint32_t all = types_.reference_count(held);
    if (all == 0) return true;
    if (counts_[target] >= all) return false;
    ++counts_[target];
    return true;
  }

  void edge(EdgeKind, Address held) { count(held); }
  void guess(Address) {}
  void borrow(Address) {}
  template <typename Name>
  void named(Address held, Name) {
    count(held);
  }
  void type(Address held) { count(held); }
  void weak(Address) {}
  static void name_space(Address) {}
  [[nodiscard]] bool has_names(Address dict) const { return found_.is_marked(dict); }

 private:
  void count(Address held) {
    if (const Node target = found_.rank(held); target != kNoNode) ++counts_[target];
  }

  ImageTypes& types_;
  const AddressSet& found_;
  std::vector<std::uint32_t> counts_;  // by rank
};

}  // namespace plimsoll::heap
