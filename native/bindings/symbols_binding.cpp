#include "bindings/symbols_binding.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/cubin.h"
#include "symbols/demangled.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace bragg {
namespace {

// What files are called need not be UTF-8.
nb::object text(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

nb::list texts(const std::vector<std::string>& values) {
  nb::list list;
  for (const std::string& value : values) list.append(text(value));
  return list;
}

// A table whose columns are the bytes of uint32 values, for numpy.frombuffer.
class Columns {
 public:
  template <class Row, class Value>
  Columns& put(const char* name, const std::vector<Row>& rows, Value&& value) {
    std::vector<uint32_t> column;
    column.reserve(rows.size());
    for (const Row& row : rows) column.push_back(value(row));
    columns_[name] = nb::bytes(column.data(), column.size() * sizeof(uint32_t));
    return *this;
  }
  [[nodiscard]] nb::dict columns() const { return columns_; }

 private:
  nb::dict columns_;
};

template <class Row>
struct PlacedRow {
  uint32_t section;
  Row row;
};

template <class Row>
std::vector<PlacedRow<Row>> placed(const Cubin& cubin, std::vector<Row> CodeSection::* rows) {
  std::vector<PlacedRow<Row>> all;
  for (const auto& [number, section] : cubin.sections)
    for (const Row& row : section.*rows) all.push_back({number, row});
  return all;
}

nb::dict functions_of(const Cubin& cubin) {
  nb::list names;
  for (const CubinFunction& function : cubin.functions) names.append(text(function.name));
  nb::dict table = Columns()
                       .put("symbol", cubin.functions, [](auto& row) { return row.symbol; })
                       .put("section", cubin.functions, [](auto& row) { return row.section; })
                       .put("offset_bytes", cubin.functions, [](auto& row) { return row.offset_bytes; })
                       .put("size_bytes", cubin.functions, [](auto& row) { return row.size_bytes; })
                       .columns();
  table["name"] = names;
  return table;
}

nb::dict to_python(const Cubin& cubin) {
  const auto lines = placed(cubin, &CodeSection::lines);
  const auto ptx_lines = placed(cubin, &CodeSection::ptx_lines);
  nb::dict tables;
  tables["functions"] = functions_of(cubin);
  tables["lines"] = Columns()
                        .put("section", lines, [](auto& at) { return at.section; })
                        .put("offset_bytes", lines, [](auto& at) { return at.row.offset_bytes; })
                        .put("location", lines, [](auto& at) { return at.row.location; })
                        .columns();
  tables["ptx_lines"] = Columns()
                            .put("section", ptx_lines, [](auto& at) { return at.section; })
                            .put("offset_bytes", ptx_lines, [](auto& at) { return at.row.offset_bytes; })
                            .put("text", ptx_lines, [](auto& at) { return at.row.text; })
                            .put("line", ptx_lines, [](auto& at) { return at.row.line; })
                            .columns();
  tables["locations"] = Columns()
                            .put("file", cubin.locations, [](auto& row) { return row.file; })
                            .put("line", cubin.locations, [](auto& row) { return row.line; })
                            .put("function", cubin.locations, [](auto& row) { return row.function; })
                            .put("call_site", cubin.locations, [](auto& row) { return row.call_site; })
                            .columns();
  tables["names"] = texts(cubin.names);
  tables["ptx"] = texts(cubin.ptx);
  return tables;
}

Cubin read_without_gil(const nb::bytes& image) {
  const Bytes bytes(reinterpret_cast<const uint8_t*>(image.c_str()), image.size());
  const nb::gil_scoped_release no_gil;
  return read_cubin(bytes);
}

nb::dict read_cubin_tables(const nb::bytes& image) {
  try {
    return to_python(read_without_gil(image));
  } catch (const BadBytes& error) {
    throw nb::value_error(error.what());
  }
}

nb::object demangle(const char* symbol) { return text(demangled(symbol)); }

}  // namespace

void bind_symbols(nb::module_& module) {
  module.def("read_cubin", read_cubin_tables, "image"_a);
  module.def("demangle", demangle, "symbol"_a);
}

}  // namespace bragg
