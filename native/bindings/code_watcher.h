#pragma once

namespace bragg {

// Tells the core when a code object dies whose address is a key of its path caches: by CPython's watchers (3.12 on),
// else by the destructor of code objects. GIL held.
void watch_code_objects();

}  // namespace bragg
