#pragma once

namespace bragg {

// Tells the core when a code object dies whose address is a key of its path caches. CPython 3.12 and later; on 3.10 and
// 3.11 a function that is made and dropped in a loop may be shown under the name of one that had its address before.
void watch_code_objects();

}  // namespace bragg
