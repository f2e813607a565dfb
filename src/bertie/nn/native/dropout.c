/* Dropout by place: nothing is kept for the gradient, which is the same call with the same seed. */

#include "vectors.h"

#define CHUNK 16384

/* out = dropout(x) + added, where `added` may be NULL. */
void drop(const float *x, const float *added, float *out, int64_t size, float rate, uint64_t seed, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t chunk = 0; chunk < (size + CHUNK - 1) / CHUNK; chunk++) {
        int64_t begin = chunk * CHUNK, end = begin + CHUNK < size ? begin + CHUNK : size, at = begin;
        dropout dropped = dropout_of(seed, rate, chunk);
        for (; at + LANES <= end; at += LANES) {
            vec value = (vec)((ivec)(load(x + at) * dropped.grow) & staying(&dropped, (uint32_t)(at - begin)));
            if (added) value += load(added + at);
            store(out + at, value);
        }
        ivec stays = staying(&dropped, (uint32_t)(at - begin));
        for (int64_t lane = 0; at + lane < end; lane++) {
            float value = stays[lane] ? x[at + lane] * dropped.grow : 0.0f;
            out[at + lane] = added ? value + added[at + lane] : value;
        }
    }
}
