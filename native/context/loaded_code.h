// The executable and the libraries of the process, and what their instructions say of callers.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "context/frame_table.h"
#include "symbols/unwind_table.h"

namespace bragg {

// Whose code it is: frames of the interpreter are shown as Python frames; those of the driver, of CUPTI and of this
// library stand between a launch and who made it; those of the C library begin threads.
enum class CodeOwner : uint8_t { Program, System, Interpreter, Driver };

// What is known of one instruction.
struct CodePlace {
  UnwindRule rule;
  FrameId frame = FrameId::None;  // of its function; None: of the interpreter, the driver, or of no library
  CodeOwner owner = CodeOwner::Program;
};

// A file that native frames are in.
struct CodeFile {
  std::string name;  // its path, and a number where files of one path were different ones
  std::string path;
  std::string build_id;  // may be empty
};

// Threads: any; one mutex. Callers on hot paths keep what they got, until `epoch` changes: a library was loaded or
// unloaded. Frames are `0x<offset of the function in its file's addresses>` in a file; names are read after the run.
class LoadedCode {
 public:
  static LoadedCode& instance();

  [[nodiscard]] CodePlace find(uint64_t pc);
  [[nodiscard]] static uint32_t epoch() noexcept { return epoch_.load(std::memory_order_acquire); }

  // The library that has this function is the interpreter.
  void set_interpreter(const void* function);
  void note_changes();  // of the loader; consumer
  [[nodiscard]] std::vector<CodeFile> files();

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

 private:
  struct Module {
    uint64_t begin = 0;  // of its addresses
    uint64_t end = 0;
    uint64_t base = 0;  // an address in memory less the file's
    UnwindTable table;  // no header: it has none
    CodeOwner owner = CodeOwner::Program;
    std::string path;
    std::string build_id;
  };
  struct Changes {  // of the loader, ever
    uint64_t loaded = 0;
    uint64_t unloaded = 0;
  };

  [[nodiscard]] static Changes changes() noexcept;
  void refresh();
  void read_modules();
  [[nodiscard]] const Module* module_of(uint64_t pc) const;
  [[nodiscard]] FrameId frame_of(const Module& module, uint64_t address);
  [[nodiscard]] const std::string& file_of(const Module& module);

  static std::atomic<uint32_t> epoch_;

  std::mutex mutex_;
  std::vector<Module> modules_;  // by address
  Changes seen_;
  uint64_t interpreter_ = 0;
  std::unordered_map<uint64_t, CodePlace> places_;  // by address of the instruction
  std::vector<CodeFile> files_;
};

}  // namespace bragg
