// Names, files and lines of code objects; the tables are written out by hand after the published formats.
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "context/code_location.h"
#include "context/python_frame_ids.h"
#include "python_objects.h"

namespace {

using bragg::LineTableFormat;
using bragg::PythonLayout;
using bragg::test::kAscii;
using bragg::test::kCompact;
using bragg::test::kKindShift;
using Bytes = std::vector<uint8_t>;

std::vector<int> lines(const Bytes& table, LineTableFormat format, int first_line, uint32_t instructions) {
  std::vector<int> result;
  for (uint32_t i = 0; i < instructions; ++i) result.push_back(bragg::line_at(table, format, first_line, 2 * i));
  return result;
}

TEST(line_deltas_are_decoded) {
  // 4 bytes at +0, 2 bytes without a line, 2 bytes at +3, an empty range of -1, 4 bytes at -2
  const Bytes table{4, 0, 2, 0x80, 2, 3, 0, 0xFF, 4, 0xFE};
  CHECK(lines(table, LineTableFormat::LineDeltas, 10, 7) == (std::vector<int>{10, 10, 0, 13, 10, 10, 0}));
}

uint8_t head(int code, int units) { return static_cast<uint8_t>(0x80 | (code << 3) | (units - 1)); }

TEST(every_form_of_location_entry_is_decoded) {
  const Bytes table{
      head(15, 1),                             // no location
      head(3, 2),  0x12,                       // short form: same line
      head(12, 1), 1,    5,                    // one-line form: + 2
      head(13, 1), 0x05,                       // no columns: - 2
      head(14, 1), 0x40, 0x02, 0,    1,    1,  // long form: + 64
      head(13, 1), 0x41, 0x40, 0x40, 0x01,     // no columns: - 131072
      head(13, 8), 0x42, 0x40, 0x40, 0x01,     // no columns: + 131073
  };
  CHECK(lines(table, LineTableFormat::LocationEntries, 100, 16) ==
        (std::vector<int>{0, 100, 100, 102, 100, 164, -130908, 165, 165, 165, 165, 165, 165, 165, 165, 0}));
}

TEST(damaged_tables_give_some_line_and_read_nothing_outside) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> byte(0, 255), size(0, 40);
  size_t decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes table(static_cast<size_t>(size(random)));
    for (auto& value : table) value = static_cast<uint8_t>(byte(random));
    for (const auto format : {LineTableFormat::LineDeltas, LineTableFormat::LocationEntries})
      decoded += lines(table, format, 0x7FFFFFF0, 64).size();
  }
  CHECK_EQ(decoded, 20000u * 2 * 64);
}

// A str as CPython lays it out, in each of its four forms.
struct Text {
  uint64_t head[2]{};
  int64_t length = 0;
  uint32_t state = 0;
  const void* data = nullptr;           // not compact
  std::array<std::byte, 64> compact{};  // the ASCII form starts 8 bytes earlier, over `data`
};

struct Code {
  const Text* name;
  const Text* file;
  const void* line_table;
  int32_t first_line;
};

struct Table {
  int64_t size = 0;
  std::array<uint8_t, 16> data{};
};

PythonLayout layout() {
  PythonLayout layout{};
  layout.version_hex = 0x030C0000;
  layout.is_valid = 1;
  layout.code_name = offsetof(Code, name);
  layout.code_file = offsetof(Code, file);
  bragg::test::place_code<Code, Table>(layout);
  bragg::test::place_text<Text>(layout);
  layout.text_compact_data = offsetof(Text, compact);
  layout.text_data_pointer = offsetof(Text, data);
  return layout;
}

template <class Unit>
Text text(const std::basic_string<Unit>& characters, uint32_t flags) {
  Text text;
  text.length = static_cast<int64_t>(characters.size());
  text.state = static_cast<uint32_t>(sizeof(Unit) << kKindShift) | flags;
  auto* data = (flags & kAscii) != 0 ? reinterpret_cast<std::byte*>(&text) + offsetof(Text, data) : text.compact.data();
  std::memcpy(data, characters.data(), characters.size() * sizeof(Unit));
  return text;
}

struct Location {
  std::string name, file;
  int line;
};

Location describe(const Text& name, const Text& file) {
  bragg::set_python_layout(layout());
  const Table table{2, {head(11, 4), 0}};
  const Code code{&name, &file, &table, 41};
  const auto place = bragg::describe({&code, 6, nullptr});
  bragg::set_python_layout(PythonLayout{});
  return {place.qualified_name, place.file, place.line};
}

TEST(texts_of_every_width_become_utf8) {
  const auto ascii =
      describe(text<char>("work.<locals>.inner", kCompact | kAscii), text<char>("a.py", kCompact | kAscii));
  CHECK_EQ(ascii.name, "work.<locals>.inner");
  CHECK_EQ(ascii.file, "a.py");
  CHECK_EQ(ascii.line, 42);
  const auto wide = describe(text<char>("gr\xF6\xDF\x65", kCompact), text<char16_t>(u"кадр 帧", kCompact));
  CHECK_EQ(wide.name, "größe");
  CHECK_EQ(wide.file, "кадр 帧");
  CHECK_EQ(describe(text<char32_t>(U"a\U0001F50D", kCompact), text<char>("", kCompact | kAscii)).name, "a\U0001F50D");
}

TEST(lone_surrogates_become_replacement_characters) {
  const std::u16string undecodable{u'a', char16_t{0xDCE9}, u'b'};
  CHECK_EQ(describe(text(undecodable, kCompact), text(undecodable, kCompact)).file, "a\uFFFDb");
}

TEST(characters_of_a_subclass_are_behind_a_pointer) {
  const std::string characters = "elsewhere";
  Text name = text<char>("", 0);
  name.length = static_cast<int64_t>(characters.size());
  name.data = characters.data();
  CHECK_EQ(describe(name, name).name, "elsewhere");
}

TEST(instructions_of_neighbouring_code_objects_are_told_apart) {
  bragg::set_python_layout(layout());
  const Text names[] = {text<char>("first", kCompact | kAscii), text<char>("second", kCompact | kAscii)};
  const Table table{2, {head(11, 4), 0}};
  struct alignas(512) Aligned {
    Code code;
  };
  alignas(1024) const Aligned codes[] = {{{&names[0], &names[0], &table, 1}}, {{&names[1], &names[1], &table, 1}}};
  auto& ids = bragg::PythonFrameIds::instance();
  const auto name_of = [](bragg::FrameId frame) {
    auto& frames = bragg::FrameTable::instance();
    return frames.string(frames.frame(frame).name);
  };
  CHECK_EQ(name_of(ids.intern({&codes[0].code, sizeof(Aligned), nullptr})), "first");
  CHECK_EQ(name_of(ids.intern({&codes[1].code, 0, nullptr})), "second");
  const uint32_t epoch = ids.epoch();
  ids.forget(&codes[0].code);
  ids.forget(&codes[0].code);  // it has no ids any more
  CHECK_EQ(ids.epoch(), epoch + 1);
  bragg::set_python_layout(PythonLayout{});
}

TEST(without_a_layout_there_is_nothing_to_describe) {
  bragg::set_python_layout(PythonLayout{});
  const auto place = bragg::describe({nullptr, 0, nullptr});
  CHECK(place.qualified_name.empty() && place.file.empty() && place.line == 0);
}

}  // namespace
