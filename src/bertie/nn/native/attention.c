/* Full-visibility attention over rows of any length, stored flat: no padding, no mask, one pass of softmax.

   Each (row, head) is one piece of work. Keys are turned once so that queries meet them along vectors; TILE queries are
   scored, normalised and summed while their scores are still in the first cache. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#define TILE 6
#define WIDE (2 * LANES)

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec load(const float *from) { return *(const vec *)from; }
static inline void store(float *to, vec value) { *(vec *)to = value; }
static inline vec all(float value) { return value - (vec){0}; }

/* e^x for x <= 0: 2^n by the exponent's bits, the rest by a polynomial (relative error below 2e-7). */
static inline vec exponential(vec x) {
    vec low = all(-87.0f);
    ivec above = x > low;
    x = (vec)(((ivec)x & above) | ((ivec)low & ~above));
    vec scaled = x * 1.44269504f;
    vec shifted = scaled + 12582912.0f; /* 1.5 * 2^23: rounds to a whole number */
    vec whole = shifted - 12582912.0f;
    vec rest = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    vec sum = all(1.9875691500e-4f);
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    ivec power = ((ivec)shifted - 0x4B400000 + 127) << 23;
    return sum * (vec)power;
}

/* scores[TILE][stride] = queries . turned keys, WIDE or LANES keys at a time. */
static void score(const float *queries, const float *turned, float *scores, long width, long stride) {
    long key = 0;
    for (; key + WIDE <= stride; key += WIDE) {
        vec left[TILE], right[TILE];
        for (int i = 0; i < TILE; i++) left[i] = right[i] = all(0.0f);
        const float *column = turned + key;
        for (long d = 0; d < width; d++, column += stride) {
            vec a = load(column), b = load(column + LANES);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) {
                vec q = all(queries[i * width + d]);
                left[i] += q * a;
                right[i] += q * b;
            }
        }
        for (int i = 0; i < TILE; i++) {
            store(scores + i * stride + key, left[i]);
            store(scores + i * stride + key + LANES, right[i]);
        }
    }
    for (; key < stride; key += LANES) {
        vec only[TILE];
        for (int i = 0; i < TILE; i++) only[i] = all(0.0f);
        for (long d = 0; d < width; d++) {
            vec a = load(turned + d * stride + key);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) only[i] += a * queries[i * width + d];
        }
        for (int i = 0; i < TILE; i++) store(scores + i * stride + key, only[i]);
    }
}

/* One row of scores becomes weights; what stands behind the last key becomes zero. Returns 1 / their sum. */
static float normalise(float *scores, long length, long stride) {
    for (long key = length; key < stride; key++) scores[key] = -1e30f;
    vec high = load(scores);
    for (long key = LANES; key < stride; key += LANES) {
        vec next = load(scores + key);
        ivec above = next > high;
        high = (vec)(((ivec)next & above) | ((ivec)high & ~above));
    }
    float highest = high[0];
    for (int lane = 1; lane < LANES; lane++) highest = high[lane] > highest ? high[lane] : highest;
    vec total = all(0.0f);
    for (long key = 0; key < stride; key += LANES) {
        vec score = load(scores + key), weight = exponential(score - highest);
        store(scores + key, weight);
        total += weight + (score - score); /* a score that is not finite must not go unseen */
    }
    float sum = 0.0f;
    for (int lane = 0; lane < LANES; lane++) sum += total[lane];
    for (long key = length; key < stride; key++) {
        sum -= scores[key];
        scores[key] = 0.0f;
    }
    return 1.0f / sum;
}

/* out[TILE][width] = weights . values, LANES or WIDE columns at a time. */
static void weigh(const float *scores, const float *values, float *out, const float *inverse, long length, long width,
                  long stride, long value_step, long out_step, int count) {
    long d = 0;
    for (; d + WIDE <= width; d += WIDE) {
        vec left[TILE], right[TILE];
        for (int i = 0; i < TILE; i++) left[i] = right[i] = all(0.0f);
        for (long key = 0; key < length; key++) {
            const float *value = values + key * value_step + d;
            vec a = load(value), b = load(value + LANES);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) {
                vec w = all(scores[i * stride + key]);
                left[i] += w * a;
                right[i] += w * b;
            }
        }
        for (int i = 0; i < count; i++) {
            store(out + i * out_step + d, left[i] * inverse[i]);
            store(out + i * out_step + d + LANES, right[i] * inverse[i]);
        }
    }
    for (; d < width; d += LANES) {
        vec only[TILE];
        for (int i = 0; i < TILE; i++) only[i] = all(0.0f);
        for (long key = 0; key < length; key++) {
            vec a = load(values + key * value_step + d);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) only[i] += a * scores[i * stride + key];
        }
        for (int i = 0; i < count; i++) store(out + i * out_step + d, only[i] * inverse[i]);
    }
}

static void one_head(const float *query, const float *key, const float *value, float *out, long queries, long keys,
                     long width, long query_step, long key_step, long value_step, long out_step, float scale,
                     float *scratch) {
    long stride = (keys + LANES - 1) / LANES * LANES;
    float *turned = scratch, *scores = turned + width * stride, *tile = scores + TILE * stride;
    memset(turned, 0, sizeof(float) * width * stride);
    for (long j = 0; j < keys; j++)
        for (long d = 0; d < width; d++) turned[d * stride + j] = key[j * key_step + d];
    for (long first = 0; first < queries; first += TILE) {
        int count = queries - first < TILE ? (int)(queries - first) : TILE;
        float inverse[TILE];
        for (int i = 0; i < TILE; i++) {
            const float *row = query + (first + (i < count ? i : 0)) * query_step;
            for (long d = 0; d < width; d++) tile[i * width + d] = row[d] * scale;
        }
        score(tile, turned, scores, width, stride);
        for (int i = 0; i < count; i++) inverse[i] = normalise(scores + i * stride, keys, stride);
        weigh(scores, value, out + first * out_step, inverse, keys, width, stride, value_step, out_step, count);
    }
}

int lanes(void) { return LANES; }

/* Steps are from token to token, in floats; heads lie side by side, `width` apart. Returns 1 when memory ran out. */
int attend(const float *query, const float *key, const float *value, float *out, const int64_t *query_lengths,
           const int64_t *key_lengths, int64_t num_rows, int64_t num_heads, int64_t width, int64_t query_step,
           int64_t key_step, int64_t value_step, int64_t out_step, float scale, int num_threads) {
    int64_t *starts = malloc(sizeof(int64_t) * 2 * (num_rows + 1));
    if (!starts) return 1;
    int64_t *key_starts = starts + num_rows + 1, longest = 1;
    starts[0] = key_starts[0] = 0;
    for (int64_t row = 0; row < num_rows; row++) {
        starts[row + 1] = starts[row] + query_lengths[row];
        key_starts[row + 1] = key_starts[row] + key_lengths[row];
        if (key_lengths[row] > longest) longest = key_lengths[row];
    }
    long stride = (longest + LANES - 1) / LANES * LANES;
    int failed = 0;
#pragma omp parallel num_threads(num_threads)
    {
        float *scratch = malloc(sizeof(float) * ((width + TILE) * stride + TILE * width));
        if (!scratch) failed = 1;
#pragma omp for schedule(dynamic, 1)
        for (int64_t piece = 0; piece < num_rows * num_heads; piece++) {
            int64_t row = piece / num_heads, head = piece % num_heads;
            if (!scratch || !query_lengths[row]) continue;
            one_head(query + starts[row] * query_step + head * width, key + key_starts[row] * key_step + head * width,
                     value + key_starts[row] * value_step + head * width, out + starts[row] * out_step + head * width,
                     query_lengths[row], key_lengths[row], width, query_step, key_step, value_step, out_step, scale,
                     scratch);
        }
        free(scratch);
    }
    free(starts);
    return failed;
}
