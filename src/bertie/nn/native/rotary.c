/* Rotary positions: the two halves of each head turned by the angle of their token's place. Turned back by the same angle,
   the gradient of what left is the gradient of what came. */

#include "vectors.h"

int lanes(void) { return LANES; }

/* out [num_tokens][num_heads][width] from x, whose tokens are `step` apart; cosines and sines are [places][width / 2], and
   `sign` is 1 or, to turn back, -1. */
void rotate(const float *x, int64_t step, float *out, const float *cosines, const float *sines, const int64_t *places,
            int64_t num_tokens, int64_t num_heads, int64_t width, float sign, int num_threads) {
    int64_t half = width / 2;
#pragma omp parallel for num_threads(num_threads)
    for (int64_t token = 0; token < num_tokens; token++) {
        const float *cosine = cosines + places[token] * half, *sine = sines + places[token] * half;
        for (int64_t head = 0; head < num_heads; head++) {
            const float *from = x + token * step + head * width;
            float *to = out + (token * num_heads + head) * width;
            for (int64_t d = 0; d < half; d += LANES) {
                vec left = load(from + d), right = load(from + half + d);
                vec along = load(cosine + d), across = load(sine + d) * sign;
                store(to + d, left * along - right * across);
                store(to + half + d, right * along + left * across);
            }
        }
    }
}
