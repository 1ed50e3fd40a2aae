// formats/firefox/shared_tables.cc: profile tables -> columns.
#include "formats/firefox/shared_tables.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include "formats/firefox/packages.h"

namespace plimsoll::formats::firefox {
namespace {

constexpr std::int64_t kNone = -1;
constexpr std::int64_t kLibraryResource = 1;  // shown by its name; a file of the function takes precedence

// A row of funcTable.
struct FuncRow {
  std::string_view name;
  profile::FunctionKind kind = profile::FunctionKind::kSynthetic;
  std::int64_t resource = kNone;
  std::int64_t source = kNone;
  std::uint32_t first_line = 0;
};

// A row of frameTable.
struct FrameRow {
  std::int64_t func = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool is_jitted = false;
  std::uint8_t inline_depth = 0;
  std::int64_t symbol = kNone;  // of machine code that the page can ask for
};

// A row of stackTable. prefix_offset: how far above its parent is; 0 = a root.
struct StackRow {
  std::int64_t frame = 0;
  std::int64_t prefix_offset = 0;
};

Category category_of(const FuncRow& func) {
  if (func.name == "[gc]") return Category::kGarbageCollection;
  if (func.name == "[tracing]" || func.name == "[blackhole]") return Category::kJit;
  switch (func.kind) {
    case profile::FunctionKind::kPython: return Category::kPython;
    case profile::FunctionKind::kNative: return Category::kNative;
    case profile::FunctionKind::kSynthetic: break;
  }
  return Category::kOther;
}

std::string_view base_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

// Writes the tables, each as an object of columns and their length.
class SharedTables {
 public:
  SharedTables(JsonWriter& json, const FileLayout& layout, Texts& texts)
      : json_(json), profile_(layout.profile), jit_(layout.jit), columns_(json, layout.slabs), texts_(texts) {
    for (const profile::Function& function : profile_.functions.rows()) add_function(function);
    for (const profile::Frame& frame : profile_.frames.rows())
      frames_.push_back(
          {frame.function.index(), frame.line, frame.column, !frame.trace.is_none(), frame.inline_depth, kNone});
    for (std::size_t i = 0; i < jit_.of_frame.size(); ++i)
      if (jit_.of_frame[i]) frames_[i].symbol = static_cast<std::int64_t>(*jit_.of_frame[i]);
    for (std::size_t i = 0; i < profile_.stacks.size(); ++i) {
      const profile::StackNode& node = profile_.stacks.rows()[i];
      const std::size_t offset = node.parent.is_none() ? 0 : i - node.parent.index();
      stacks_.push_back({node.frame.index(), static_cast<std::int64_t>(offset)});
    }
    if (layout.has_empty_stack) {
      funcs_.push_back({.name = kNoStack});
      frames_.push_back({static_cast<std::int64_t>(funcs_.size()) - 1, 0, 0, false, 0, kNone});
      stacks_.push_back({static_cast<std::int64_t>(frames_.size()) - 1, 0});
    }
  }

  void write() {
    table("stackTable", stacks_.size(), [&] { stack_columns(); });
    table("frameTable", frames_.size(), [&] { frame_columns(); });
    table("funcTable", funcs_.size(), [&] { func_columns(); });
    table("resourceTable", resources_.size(), [&] { resource_columns(); });
    table("nativeSymbols", jit_.symbols.size(), [&] { symbol_columns(); });
    table("sources", source_files_.size(), [&] { source_columns(); });
    table("sourceLocationTable", 0, [&] { empty_columns({"source", "line", "column"}); });
    json_.key("stringArray");
    json_.begin_array();
    for (std::size_t i = 0; i < texts_.table().size(); ++i) json_.text(texts_.table()[StringId{i}]);
    json_.end_array();
  }

 private:
  void add_function(const profile::Function& function) {
    const std::string_view name = profile_.strings[function.name];
    const std::string_view file = profile_.strings[function.file];
    FuncRow row{.name = name.empty() ? "?" : name, .kind = function.kind, .first_line = function.first_line};
    // The viewer dims functions without a resource, which is right for what the profiler itself has put there.
    if (function.kind == profile::FunctionKind::kPython)
      row.resource = index_in(resources_, file.empty() ? "Python" : package_of(file));
    if (function.kind == profile::FunctionKind::kNative)
      row.resource = index_in(resources_, file.empty() ? "native code" : std::string(base_name(file)));
    const std::string_view source = function.source.is_none() ? file : profile_.strings[function.source];
    if (!source.empty()) row.source = index_in(source_files_, std::string(source));
    funcs_.push_back(row);
  }

  // An ordered set of texts and the position of each.
  struct OrderedTexts {
    std::vector<std::string> all;
    boost::unordered_flat_map<std::string, std::int64_t> index;
    [[nodiscard]] std::size_t size() const { return all.size(); }
  };
  static std::int64_t index_in(OrderedTexts& set, const std::string& text) {
    const auto [position, inserted] = set.index.try_emplace(text, static_cast<std::int64_t>(set.size()));
    if (inserted) set.all.push_back(text);
    return position->second;
  }

  template <typename WriteColumns>
  void table(std::string_view name, std::size_t length, WriteColumns write_columns) {
    json_.key(name);
    json_.begin_object();
    write_columns();
    json_.member("length", static_cast<std::int64_t>(length));
    json_.end_object();
  }
  void empty_columns(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      json_.key(name);
      json_.begin_array();
      json_.end_array();
    }
  }
  // A column of one constant for every row.
  template <typename Rows>
  void integers(std::string_view name, const Rows& rows, std::int64_t value) {
    json_.column(name, rows, [&](const auto&) { json_.integer(value); });
  }
  template <typename Rows>
  void nulls(std::string_view name, const Rows& rows) {
    json_.column(name, rows, [&](const auto&) { json_.null(); });
  }
  // Lines and columns: 0 is unknown.
  void position(std::uint32_t value) { value == 0 ? json_.null() : json_.integer(value); }

  void stack_columns() {
    columns_.int32("frame", stacks_, [](const StackRow& row) { return row.frame; });
    columns_.int32("prefixOffset", stacks_, [](const StackRow& row) { return row.prefix_offset; });
  }
  void frame_columns() {
    columns_.int32("address", frames_, [&](const FrameRow& row) {
      return row.symbol == kNone ? kNone : unsigned_value(jit_.symbols[symbol_of(row)].offset);
    });
    columns_.uint8("inlineDepth", frames_, [](const FrameRow& row) { return row.inline_depth; });
    json_.column("category", frames_, [&](const FrameRow& row) {
      const FuncRow& func = funcs_[static_cast<std::size_t>(row.func)];
      json_.integer(static_cast<std::int64_t>(row.is_jitted ? Category::kJit : category_of(func)));
    });
    integers("subcategory", frames_, 0);
    columns_.int32("func", frames_, [](const FrameRow& row) { return row.func; });
    json_.column("nativeSymbol", frames_,
                 [&](const FrameRow& row) { row.symbol == kNone ? json_.null() : json_.integer(row.symbol); });
    integers("innerWindowID", frames_, 0);
    json_.column("line", frames_, [&](const FrameRow& row) { position(row.line); });
    json_.column("column", frames_, [&](const FrameRow& row) { position(row.column); });
    nulls("originalLocation", frames_);
  }
  static std::int64_t unsigned_value(std::uint64_t value) { return static_cast<std::int64_t>(value); }
  static std::size_t symbol_of(const FrameRow& row) { return static_cast<std::size_t>(row.symbol); }
  void symbol_columns() {
    const std::vector<JitSymbol>& symbols = jit_.symbols;
    json_.column("libIndex", symbols, [&](const JitSymbol& row) { json_.integer(unsigned_value(row.library)); });
    json_.column("address", symbols, [&](const JitSymbol& row) { json_.integer(unsigned_value(row.offset)); });
    json_.column("name", symbols, [&](const JitSymbol& row) { json_.integer(texts_.index(row.name)); });
    json_.column("functionSize", symbols,
                 [&](const JitSymbol& row) { row.size == 0 ? json_.null() : json_.integer(unsigned_value(row.size)); });
  }
  void func_columns() {
    using profile::FunctionKind;
    json_.column("name", funcs_, [&](const FuncRow& row) { json_.integer(texts_.index(row.name)); });
    json_.column("isJS", funcs_, [&](const FuncRow& row) { json_.boolean(row.kind == FunctionKind::kPython); });
    json_.column("relevantForJS", funcs_,
                 [&](const FuncRow& row) { json_.boolean(row.kind == FunctionKind::kSynthetic); });
    json_.column("resource", funcs_, [&](const FuncRow& row) { json_.integer(row.resource); });
    json_.column("source", funcs_,
                 [&](const FuncRow& row) { row.source == kNone ? json_.null() : json_.integer(row.source); });
    json_.column("lineNumber", funcs_, [&](const FuncRow& row) { position(row.first_line); });
    nulls("columnNumber", funcs_);
    nulls("originalLocation", funcs_);
  }
  void resource_columns() {
    nulls("lib", resources_.all);
    json_.column("name", resources_.all, [&](const std::string& name) { json_.integer(texts_.index(name)); });
    nulls("host", resources_.all);
    integers("type", resources_.all, kLibraryResource);
  }
  void source_columns() {
    boost::unordered_flat_map<std::string_view, std::string_view> contents;
    for (const profile::Source& source : profile_.sources) contents.emplace(source.file, source.text);
    const std::vector<std::string>& files = source_files_.all;
    nulls("id", files);
    json_.column("filename", files, [&](const std::string& file) { json_.integer(texts_.index(file)); });
    integers("startLine", files, 1);
    integers("startColumn", files, 1);
    nulls("sourceMapURL", files);
    json_.column("content", files, [&](const std::string& file) {
      const auto found = contents.find(file);
      found == contents.end() ? json_.null() : json_.text(found->second);
    });
  }

  JsonWriter& json_;
  const profile::Profile& profile_;
  const JitSymbols& jit_;
  Columns columns_;
  Texts& texts_;
  std::vector<FuncRow> funcs_;
  std::vector<FrameRow> frames_;
  std::vector<StackRow> stacks_;
  OrderedTexts resources_;
  OrderedTexts source_files_;
};

}  // namespace

void write_shared(JsonWriter& json, const FileLayout& layout, Texts& texts) {
  json.key("shared");
  json.begin_object();
  SharedTables(json, layout, texts).write();
  json.end_object();
}

}  // namespace plimsoll::formats::firefox
