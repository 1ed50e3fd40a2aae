#include "cli/render_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/json_document.h"
#include "cli/table.h"
#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

// Something for each kind of value.
template <class... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};
template <class... Calls>
Overloaded(Calls...) -> Overloaded<Calls...>;  // clang 14 does not find it by itself

std::string text_of(const sql::Value& value) {
  return std::visit(Overloaded{[](std::monostate) { return std::string{}; },
                               [](std::int64_t number) { return fmt::format("{}", number); },
                               [](double number) { return fmt::format("{:.6g}", number); },
                               [](const std::string& text) { return printable(text); }},
                    value);
}

bool has_text(const sql::Answer& answer, std::size_t column) {
  return std::any_of(answer.rows.begin(), answer.rows.end(),
                     [&](const auto& row) { return std::holds_alternative<std::string>(row[column]); });
}

void put_value(formats::JsonWriter& json, const sql::Value& value) {
  std::visit(Overloaded{[&](std::monostate) { json.null(); }, [&](std::int64_t number) { json.integer(number); },
                        [&](double number) { json.number(number); }, [&](const std::string& text) { json.text(text); }},
             value);
}

}  // namespace

std::string render_answer(const sql::Answer& answer, const Page& page) {
  if (answer.rows.empty()) return "no rows\n";
  std::vector<Column> columns;
  for (std::size_t i = 0; i < answer.columns.size(); ++i)
    columns.push_back({printable(answer.columns[i]), has_text(answer, i) ? Fit::kCutRight : Fit::kRight});
  Table table(std::move(columns));
  for (const auto& row : answer.rows) {
    std::vector<Cell> cells;
    for (const sql::Value& value : row) cells.push_back({{text_of(value)}});
    table.add_row(std::move(cells));
  }
  std::string out = table.render(page);
  if (answer.is_cut) out += "\n" + page.paint(Style::kDim, "there are more rows (--limit 0 shows all)") + "\n";
  return out;
}

std::string answer_json(const sql::Answer& answer) {
  std::string out;
  formats::JsonWriter json(out);
  begin_document(json);
  json.column("columns", answer.columns, [&](const std::string& name) { json.text(name); });
  json.column("rows", answer.rows, [&](const std::vector<sql::Value>& row) {
    json.begin_array();
    for (const sql::Value& value : row) put_value(json, value);
    json.end_array();
  });
  put_more(json, answer.is_cut);
  json.end_object();
  return out + "\n";
}

}  // namespace plimsoll::cli
