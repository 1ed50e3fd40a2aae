#include "heap/image_capture.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <vector>

#include "cpython/int_object.h"
#include "cpython/literals.h"
#include "heap/address_set.h"
#include "heap/content_hash.h"
#include "heap/generations.h"
#include "heap/image_edges.h"
#include "heap/open_objects.h"
#include "heap/pools.h"
#include "heap/sure_references.h"

namespace plimsoll::heap {
namespace {

namespace flag = cpython::type_flag;

// Finds all objects that can be reached. A sink for ImageEdges.
class Finder {
 public:
  Finder(const ImageView& view, ImageTypes& types, const KeptDicts& kept, AddressSet& found)
      : types_(types), found_(found), edges_(view, kept, *this), open_(found) {}

  void add(Address object) {
    if (is_null(object) || found_.contains(object) || types_.of_object(object) == nullptr) return;
    if (found_.insert(object)) open_.push(object);
  }
  // Follows all edges from what was added.
  void run() {
    do {
      for (; next_type_ < types_.all().size(); ++next_type_) add(types_.all()[next_type_].address);
      for (Address object{}; open_.pop(object);)
        if (const ImageType* type = types_.of_object(object); type != nullptr) edges_.visit(object, *type);
    } while (next_type_ < types_.all().size());
  }

  void edge(EdgeKind, Address held) { add(held); }
  void guess(Address held) {
    if (!is_null(held) && !found_.contains(held) && types_.of_guess(held) != nullptr) add(held);
  }
  void borrow(Address held) { add(held); }
  template <typename Name>
  void named(Address held, Name) {
    add(held);
  }
  void type(Address held) { add(held); }
  void weak(Address) {}
  void name_space(Address dict) {
    add(dict);
    found_.mark(dict);
  }
  static bool has_names(Address) { return false; }

 private:
  ImageTypes& types_;
  AddressSet& found_;
  ImageEdges<Finder> edges_;
  OpenObjects open_;
  std::size_t next_type_ = 0;
};

// What an object is called, or is.
class ObjectText {
 public:
  ObjectText(const ImageView& view, ImageTypes& types, const KeptDicts& kept, ImageValues values)
      : view_(view), types_(types), kept_(kept), values_(values) {}

  std::string of(Address object, const ImageType& type) const {
    const auto& code = view_.layout().code;
    if (type.shape == ImageShape::kClass) return class_name(object);
    if (type.shape == ImageShape::kCode) return name(view_.pointer(object, code.name));
    if (type.shape == ImageShape::kModule)
      return name(entry_of(view_, view_.pointer_in(object, cpython::container_field::kModuleDict), "__name__"));
    if (type.c_name == "function") return name(view_.pointer_in(object, view_.fields().function_qualname));
    if (type.c_name == "builtin_function_or_method")
      return c_text(view_, view_.pointer(view_.pointer_in(object, 16), 0));
    if (type.facets.label) return words_of(attribute(object, type, *type.facets.label));
    return values_ == ImageValues::kShown ? value(object, type) : std::string{};
  }

  // "collections.OrderedDict", "app.Outer.Inner", "list".
  [[nodiscard]] std::string class_name(Address type) const {
    std::string found = c_text(view_, view_.pointer_in(type, cpython::type_field::kName));
    if ((view_.word_in(type, cpython::type_field::kFlags) & flag::kHeapType) != 0) {
      const std::string qualified = name(view_.pointer_in(type, view_.fields().heap_type.qualname));
      const std::string module = name(entry_of(view_, type_dict(view_, kept_, type), "__module__"));
      if (!qualified.empty()) found = module.empty() ? qualified : module + "." + qualified;
    }
    if (found.empty()) found = "?";
    return found.starts_with("builtins.") ? found.substr(9) : found;
  }

 private:
  static constexpr std::uint64_t kLongestName = 200, kLongestValue = 100;

  [[nodiscard]] std::string name(Address text) const {
    const ImageType* type = types_.of_object(text);
    return type != nullptr && type->is(flag::kText) ? text_of(view_, text, kLongestName) : std::string{};
  }

  // What an object has under a name, wherever it is kept; null if nothing.
  [[nodiscard]] Address attribute(Address object, const ImageType& type, const std::string& wanted) const {
    for (const ImageMember& member : type.members)
      if (member.name == wanted && member.is_in(object, view_)) return view_.pointer(object, member.offset);
    if (!type.has_attributes) return {};
    const cpython::Attributes attributes = attributes_of(view_, object, type);
    // Values that a dict has taken over are the dict's.
    if (!is_null(attributes.dict) || is_null(attributes.values)) return entry_of(view_, attributes.dict, wanted);
    const KeyTable names = shared_names(view_, type);
    Address found{};
    Address value = attributes.values;
    if (names.is_sound)
      view_.each_row<2>(names.entries, std::min(attributes.capacity, names.count), [&](const auto& row) {
        if (row[0] != 0 && is_null(found) && name(Address{row[0]}) == wanted) found = view_.pointer(value, 0);
        value = offset_by(value, 8);
      });
    return found;
  }

  // Of a str or an int.
  [[nodiscard]] std::string words_of(Address object) const {
    const ImageType* type = types_.of_object(object);
    if (type == nullptr) return {};
    return type->is(flag::kText) ? text_of(view_, object, kLongestValue) : digits(object, *type);
  }

  [[nodiscard]] std::string value(Address object, const ImageType& type) const {
    const bool is_built_in = !type.is(flag::kHeapType);
    if (is_built_in && type.c_name == "str") return "'" + text_of(view_, object, kLongestValue) + "'";
    if (is_built_in && type.c_name == "bytes") {
      std::string bytes(std::min(view_.item_count(object), kLongestValue), '\0');
      const bool is_read = view_.image().read(offset_by(object, view_.layout().bytes.data), bytes.data(), bytes.size());
      return is_read ? cpython::bytes_literal(bytes) : std::string{};
    }
    if (is_built_in && type.c_name == "float")
      return cpython::float_literal(std::bit_cast<double>(view_.word_in(object, 16)));
    return digits(object, type);
  }

  // Of an int; empty if it is none, or does not fit into 64 bits: as from inside.
  [[nodiscard]] std::string digits(Address object, const ImageType& type) const {
    constexpr std::size_t kRoom = 32, kMostDigits = 3;
    if (!type.is(flag::kInt) || cpython::int_digits(view_, object).count > kMostDigits) return {};
    const std::string text = cpython::int_text(view_, object, kRoom);
    std::int64_t number = 0;
    return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{} ? text : std::string{};
  }

  const ImageView& view_;
  ImageTypes& types_;
  const KeptDicts& kept_;
  ImageValues values_;
};

// Writes objects that were found. A sink for ImageEdges.
class Recorder {
 public:
  Recorder(const ImageView& view, ImageTypes& types, const KeptDicts& kept, const AddressSet& found,
           SureReferences& sure, const ObjectText& text, const Generations& generations, const BlockCount& blocks,
           SnapshotWriter& writer)
      : view_(view),
        types_(types),
        found_(found),
        sure_(sure),
        text_(text),
        generations_(generations),
        blocks_(blocks),
        writer_(writer),
        edges_(view, kept, *this) {}

  void object(Address object) {
    const ImageType* type = types_.of_object(object);
    if (type == nullptr) return;  // cannot be: it was when it was found
    guessed_ += type->is_guessed ? 1 : 0;
    const ObjectSize size = size_of(view_, object, *type);
    blocks_.add(raw(object), size);
    writer_.begin_node(type->number, size.total(), types_.reference_count(object), object);
    writer_.generation(generation_of(object, *type));
    hash_content(object, *type);
    for (const NativeExtent& extent : {size.native, size.block})
      if (extent.size != 0) writer_.buffer(extent.start, extent.size);
    edges_.visit(object, *type);
    if (const std::string text = text_.of(object, *type); !text.empty()) writer_.text(text);
    writer_.end_node();
  }
  void root(std::uint32_t type, const ImageRoot& root, Node first_root) {
    writer_.begin_node(type, 0, 0, Address{});
    for (const ImageRootEdge& each : root.edges) {
      if (each.word != nullptr)
        named(each.held, each.word);
      else
        named(each.held, each.name);
    }
    for (const std::size_t child : root.children)
      writer_.edge(EdgeKind::kElement, first_root + static_cast<Node>(child));
    writer_.text(root.text);
    writer_.end_node();
  }

  void edge(EdgeKind kind, Address held) {
    const Node target = found_.rank(held);
    if (target == kNoNode)
      writer_.count_lost_edge();
    else
      writer_.edge(kind, target);
  }
  void guess(Address held) {
    const Node target = found_.rank(held);
    if (target != kNoNode && sure_.take_room(held, target)) writer_.edge(EdgeKind::kReference, target);
  }
  void borrow(Address held) { edge(EdgeKind::kReference, held); }
  void named(Address held, const char* word) {
    if (const Node target = found_.rank(held); target != kNoNode)
      writer_.named_edge(target, number(words_, std::string(word), [&] { return std::string(word); }));
    else
      writer_.count_lost_edge();
  }
  void named(Address held, Address name) {
    constexpr std::uint64_t kLongestName = 200;
    if (const Node target = found_.rank(held); target != kNoNode)
      writer_.named_edge(target, number(names_, raw(name), [&] { return text_of(view_, name, kLongestName); }));
    else
      writer_.count_lost_edge();
  }
  void type(Address) { writer_.edge_to_type(); }
  void weak(Address held) {
    if (const Node target = found_.rank(held); target != kNoNode && is_not_none(held))
      writer_.edge(EdgeKind::kWeak, target);
  }
  static void name_space(Address) {}
  [[nodiscard]] bool has_names(Address dict) const { return found_.is_marked(dict); }
  [[nodiscard]] std::uint64_t guessed() const { return guessed_; }
  [[nodiscard]] const BlockCount& blocks() const { return blocks_; }

 private:
  [[nodiscard]] Generation generation_of(Address object, const ImageType& type) const {
    constexpr std::uint64_t kLinks = 16;
    if (view_.layout().version.threading == cpython::Version::Threading::kFree) return Generation::kUnknown;
    const bool has_links = type.is(flag::kCollected) && !is_built_in_class(object, type);
    if (!has_links || view_.word(Address{raw(object) - kLinks}, 0) == 0) return Generation::kUntracked;
    return generations_.of(object);
  }
  [[nodiscard]] bool is_built_in_class(Address object, const ImageType& type) const {
    return type.is(flag::kType) && (view_.word_in(object, cpython::type_field::kFlags) & flag::kHeapType) == 0;
  }

  void hash_content(Address object, const ImageType& type) {
    if (type.is(flag::kHeapType)) return;  // of subclasses, which are told by what they are
    const bool is_text = type.c_name == "str";
    if (!is_text && type.c_name != "bytes") return;
    const cpython::Content content = is_text ? text_content(view_, object) : bytes_content(view_, object);
    if (content.size > view_.image().copied_bytes()) return;
    content_.resize(content.size);
    if (view_.image().read(content.at, content_.data(), content_.size()))
      writer_.content_hash(hash_.of(content_, content.kind));
  }

  [[nodiscard]] bool is_not_none(Address object) const {
    const ImageType* type = types_.of_object(object);
    return type == nullptr || type->c_name != "NoneType";
  }
  template <typename Names, typename Key, typename Text>
  std::uint32_t number(Names& names, const Key& key, Text text) {
    const auto [found, is_new] = names.try_emplace(key, 0);
    if (is_new) found->second = writer_.add_name(text());
    return found->second;
  }

  const ImageView& view_;
  ImageTypes& types_;
  const AddressSet& found_;
  SureReferences& sure_;
  const ObjectText& text_;
  const Generations& generations_;
  BlockCount blocks_;
  ContentHash hash_{random_key()};
  std::string content_;
  SnapshotWriter& writer_;
  ImageEdges<Recorder> edges_;
  std::uint64_t guessed_ = 0;
  boost::unordered_flat_map<std::uint64_t, std::uint32_t> names_;  // by the address of a str
  boost::unordered_flat_map<std::string, std::uint32_t> words_;
};

// All passes over the heap.
class ImageCapture {
 public:
  ImageCapture(const ImageView& view, const ImageRuntime& runtime, ImageValues values, const ImageFacts& facts)
      : view_(view), runtime_(runtime), values_(values), facts_(facts), types_(view, view.type_of(runtime.code_type)) {}

  Result<ImageStatistics> run(SnapshotWriter& writer) {
    const std::vector<Address> interpreters = interpreters_of(view_, runtime_.runtime);
    // The main interpreter, which is the last, is believed before others.
    for (auto at = interpreters.rbegin(); at != interpreters.rend(); ++at)
      for (const auto& [type, dict] : find_kept_dicts(view_, types_, *at)) kept_.try_emplace(type, dict);
    std::vector<ImageRoot> roots = find_roots(view_, types_, runtime_);
    find(roots, interpreters);
    if (!types_.problem().empty())
      return Error{ErrorKind::kUnsupported, "this build of Python is not supported: " + types_.problem()};
    if (view_.is_spent()) return damaged();
    if (roots.empty() || found_.size() == 0)
      return Error{ErrorKind::kBadInput, "there is no object: the interpreter has not started, or has ended"};
    view_.refill();
    SureReferences sure(view_, types_, kept_, found_);
    if (view_.is_spent()) return damaged();
    view_.refill();
    write(roots, sure, writer);
    if (view_.is_spent()) return damaged();
    writer.add_meta("guessed", std::to_string(statistics_.guessed));
    PLIMSOLL_TRY(writer.finish());
    statistics_.edges = writer.edge_count();
    statistics_.lost_edges = writer.lost_edge_count();
    return statistics_;
  }

 private:
  static Error damaged() {
    return Error{ErrorKind::kBadInput, "its memory is damaged: objects claim to hold more than there is"};
  }

  void find(const std::vector<ImageRoot>& roots, const std::vector<Address>& interpreters) {
    Finder finder(view_, types_, kept_, found_);
    for (const ImageRoot& root : roots)
      for (const ImageRootEdge& edge : root.edges) finder.add(edge.held);
    finder.run();
    statistics_.is_cut = !each_tracked(view_, types_, interpreters, [&](std::size_t list, Address object) {
      finder.add(object);
      if (list != kNoList) generations_.add(list, object);
    });
    finder.run();
    found_.seal();
    statistics_.objects = found_.size();
  }

  void write(std::vector<ImageRoot>& roots, SureReferences& sure, SnapshotWriter& writer) {
    const ObjectText text(view_, types_, kept_, values_);
    std::vector<TypeRule> rules = built_in_rules();
    rules.insert(rules.end(), facts_.rules.begin(), facts_.rules.end());
    boost::unordered_flat_map<std::uint64_t, std::string> names;
    const auto name_of = [&](Address type) {
      const auto [found, is_new] = names.try_emplace(raw(type));
      if (is_new) found->second = text.class_name(type);
      return found->second;
    };
    types_.apply(rules, name_of);
    for (const ImageType& type : types_.all()) {
      writer.add_type(name_of(type.address));
      if (!type.is(flag::kHeapType)) roots[1].edges.push_back({type.address, {}, "types"});
    }
    const GrowingArray<Pool> pools = find_pools(view_.image(), facts_.regions, view_.layout().version);
    Recorder recorder(view_, types_, kept_, found_, sure, text, generations_, BlockCount(pools, facts_.regions),
                      writer);
    found_.for_each([&](Address address) { recorder.object(address); });
    writer.end_objects();
    const Node first_root = writer.node_count();
    std::map<std::string, std::uint32_t> root_types;
    for (const ImageRoot& root : roots) {
      const auto [type, is_new] = root_types.try_emplace(root.type, 0);
      if (is_new) type->second = writer.add_type(root.type);
      recorder.root(type->second, root, first_root);
    }
    for (const ImageType& type : types_.all())
      if (const Node node = found_.rank(type.address); node != kNoNode) writer.add_class(type.number, node);
    statistics_.guessed = recorder.guessed();
    add_memory(writer, pools, facts_.regions, recorder.blocks());
  }

  const ImageView& view_;
  ImageRuntime runtime_;
  ImageValues values_;
  const ImageFacts& facts_;
  ImageTypes types_;
  Generations generations_;
  KeptDicts kept_;
  AddressSet found_;
  ImageStatistics statistics_;
};

}  // namespace

Result<ImageStatistics> capture_image(const ImageView& view, const ImageRuntime& runtime, ImageValues values,
                                      const ImageFacts& facts, SnapshotWriter& writer) {
  return ImageCapture(view, runtime, values, facts).run(writer);
}

}  // namespace plimsoll::heap
