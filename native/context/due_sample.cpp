#include "context/due_sample.h"

namespace bragg {

constinit DueSample due_sample;

}  // namespace bragg
