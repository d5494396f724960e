// Messages between lanes for Python: groups of blocks divided among OpenMP threads. No result depends on the
// division.
#include "lanes.h"

#include "divide.h"
#include "sets.h"

namespace assay {
namespace {

int64_t groups_of_a_piece(int64_t block) { return SHARE / (SHARED * block); }

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))

extern "C" {

ASSAY_EXPORT void assay_lane_emit(int32_t variant, const assay::Emit *t, int64_t groups, int32_t threads) {
    assay::divide(groups, assay::groups_of_a_piece(t->block), threads,
                  [=](int64_t g, int64_t end) { assay::SETS[variant].lanes.emit(*t, g, end); });
}

ASSAY_EXPORT void assay_lane_absorb(int32_t variant, const assay::Absorb *t, int64_t groups, int32_t threads) {
    assay::divide(groups, assay::groups_of_a_piece(t->block), threads,
                  [=](int64_t g, int64_t end) { assay::SETS[variant].lanes.absorb(*t, g, end); });
}
}
