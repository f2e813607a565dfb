/* Attention over rows of any length, stored flat, and its gradients: no padding, no mask. A query sees the keys of its row
   that are at most `reach` places away from it.

   Each (row, head) is one piece of work. Queries are taken a block at a time. The keys that a block sees are turned so that
   queries meet them along vectors; TILE queries are scored, normalised and summed while their scores are still in the
   first cache. For the gradients the weights are computed again from the kept logarithms of their sums. Dropout is a pure
   function of the seed and the place, so it need not be kept either. */

#include "vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TILE 6
#define WIDE (2 * LANES)
#define BLOCK 32768 /* weights held at once for the gradients: they and theirs stay in the second cache */

/* scores[TILE][span] = queries . turned keys, which lie `stride` apart, WIDE or LANES keys at a time. */
static void score(const float *queries, const float *turned, float *scores, long width, long stride, long span) {
    long key = 0;
    for (; key + WIDE <= span; key += WIDE) {
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
            store(scores + i * span + key, left[i]);
            store(scores + i * span + key + LANES, right[i]);
        }
    }
    for (; key < span; key += LANES) {
        vec only[TILE];
        for (int i = 0; i < TILE; i++) only[i] = all(0.0f);
        for (long d = 0; d < width; d++) {
            vec a = load(turned + d * stride + key);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) only[i] += a * queries[i * width + d];
        }
        for (int i = 0; i < TILE; i++) store(scores + i * span + key, only[i]);
    }
}

typedef struct {
    long from, to;
} range;

/* What the places from `first` to `last` of one side see of the other, which has `length` places. */
static inline range seen(long first, long last, long length, long reach) {
    range near = {first > reach ? first - reach : 0, last + reach + 1 < length ? last + reach + 1 : length};
    return near;
}
static inline int equal(range one, range other) { return one.from == other.from && one.to == other.to; }

/* The same, counted from a place. */
static inline range after(range near, long place) {
    range counted = {near.from - place, near.to - place};
    return counted;
}

/* What a row [span] holds outside of a range gets one value; the sum of what was there is returned. */
static inline float replace_ends(float *row, range near, long span, float value) {
    float sum = 0.0f;
    for (long key = 0; key < near.from; key++) sum += row[key], row[key] = value;
    for (long key = near.to; key < span; key++) sum += row[key], row[key] = value;
    return sum;
}

/* One row of scores becomes weights, not yet divided by their sum, which is returned; what is not seen becomes zero. */
static float normalise(float *scores, range near, long span, float *largest) {
    replace_ends(scores, near, span, -1e30f);
    vec high = load(scores);
    for (long key = LANES; key < span; key += LANES) high = larger(load(scores + key), high);
    float highest = largest_of(high);
    vec total = all(0.0f);
    for (long key = 0; key < span; key += LANES) {
        vec score = load(scores + key), weight = exponential(score - highest);
        store(scores + key, weight);
        total += weight + (score - score); /* a score that is not finite must not go unseen */
    }
    *largest = highest;
    return sum_of(total) - replace_ends(scores, near, span, 0.0f);
}

/* out[count][width] (+)= factors . sums over `length` of weight x value, LANES or WIDE columns at a time. The weight of
   output i and value j is at i * across + j * along: a matrix of weights is read as it lies, or turned. */
static void weigh(const float *weights, long across, long along, const float *values, long value_step, float *out,
                  long out_step, const float *factors, long length, long width, int count, int adding) {
    long d = 0;
    for (; d + WIDE <= width; d += WIDE) {
        vec left[TILE], right[TILE];
        for (int i = 0; i < TILE; i++) left[i] = right[i] = all(0.0f);
        for (long j = 0; j < length; j++) {
            const float *value = values + j * value_step + d;
            vec a = load(value), b = load(value + LANES);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) {
                vec w = all(weights[i * across + j * along]);
                left[i] += w * a;
                right[i] += w * b;
            }
        }
        for (int i = 0; i < count; i++) {
            float *to = out + i * out_step + d;
            store(to, left[i] * factors[i] + (adding ? load(to) : all(0.0f)));
            store(to + LANES, right[i] * factors[i] + (adding ? load(to + LANES) : all(0.0f)));
        }
    }
    for (; d < width; d += LANES) {
        vec only[TILE];
        for (int i = 0; i < TILE; i++) only[i] = all(0.0f);
        for (long j = 0; j < length; j++) {
            vec a = load(values + j * value_step + d);
#pragma GCC unroll 6
            for (int i = 0; i < TILE; i++) only[i] += a * weights[i * across + j * along];
        }
        for (int i = 0; i < count; i++) {
            float *to = out + i * out_step + d;
            store(to, only[i] * factors[i] + (adding ? load(to) : all(0.0f)));
        }
    }
}

/* turned[width][stride] from [length][width]; zeros behind the last. */
static void turn(const float *from, long step, float *turned, long length, long width, long stride) {
    memset(turned, 0, sizeof(float) * width * stride);
    for (long j = 0; j < length; j++)
        for (long d = 0; d < width; d++) turned[d * stride + j] = from[j * step + d];
}

/* TILE rows side by side, scaled; the first one again where there are fewer. */
static void gather(const float *from, long step, float *tile, long width, int count, float scale) {
    for (int i = 0; i < TILE; i++) {
        const float *row = from + (i < count ? i : 0) * step;
        for (long d = 0; d < width; d++) tile[i * width + d] = row[d] * scale;
    }
}

static inline uint32_t place(long query, long key) { return (uint32_t)query << 16 | (uint32_t)key; }
static inline long whole(long place) { return place / LANES * LANES; }
static inline long vectors(long length) { return whole(length + LANES - 1); }
static inline int tile_size(long first, long end) { return end - first < TILE ? (int)(end - first) : TILE; }

/* Keys that a block of queries sees at most, in whole vectors. */
static inline long band(long block, long keys, long reach) {
    long most = reach < keys ? block + 2 * reach + LANES : keys;
    return vectors(most < keys ? most : keys);
}

/* Queries taken at once. */
static inline long block_size(long queries, long keys, long reach) {
    long block = queries > TILE ? (queries + TILE - 1) / TILE * TILE : TILE;
    while (block > TILE && block * band(block, keys, reach) > BLOCK) block -= TILE;
    return block;
}

/* `logs`, where it is not NULL, gets the logarithm of each query's sum of exponentials, `log_step` apart. */
static void one_head(const float *query, const float *key, const float *value, float *out, float *logs, long log_step,
                     long queries, long keys, long width, long reach, long query_step, long key_step, long value_step,
                     long out_step, float scale, const dropout *dropped, float *scratch) {
    long block = block_size(queries, keys, reach), most = band(block, keys, reach);
    float *turned = scratch, *scores = turned + width * most, *tile = scores + TILE * most;
    range last = {0, 0};
    for (long begin = 0; begin < queries; begin += block) {
        long end = begin + block < queries ? begin + block : queries;
        range near = seen(begin, end - 1, keys, reach);
        long origin = whole(near.from), stride = vectors(near.to - origin);
        if (!equal(near, last)) turn(key + origin * key_step, key_step, turned, near.to - origin, width, stride);
        last = near;
        for (long first = begin; first < end; first += TILE) {
            int count = tile_size(first, end);
            range nearer = seen(first, first + count - 1, keys, reach);
            long low = whole(nearer.from), span = vectors(nearer.to - low);
            float inverse[TILE];
            gather(query + first * query_step, query_step, tile, width, count, scale);
            score(tile, turned + low - origin, scores, width, stride, span);
            for (int i = 0; i < count; i++) {
                range own = after(seen(first + i, first + i, keys, reach), low);
                float *row = scores + i * span, highest, sum = normalise(row, own, span, &highest);
                inverse[i] = dropped->grow / sum;
                if (logs) logs[(first + i) * log_step] = highest + logf(sum);
                for (long j = 0; dropped->drop && j < span; j += LANES)
                    store(row + j, (vec)((ivec)load(row + j) & staying(dropped, place(first + i, low + j))));
            }
            weigh(scores, span, 1, value + low * value_step, value_step, out + first * out_step, out_step, inverse,
                  nearer.to - low, width, count, 0);
        }
    }
}

/* Weights and their gradients of one query: both rows [span] enter as dot products (query . key, out . value) and leave
   as what the values see (dropped weights), and as the gradient of the query's scores. The rows begin with key `low`. */
static void differentiate(float *weights, float *gradients, long query, long low, range near, long span, float log_sum,
                          const dropout *dropped) {
    vec product = all(0.0f);
    for (long j = 0; j < span; j += LANES) {
        vec weight = exponential(load(weights + j) - log_sum);
        ivec exists = (ivec)(NUMBERS + (uint32_t)(j - near.from) < (uint32_t)(near.to - near.from));
        weight = (vec)((ivec)weight & exists);
        vec gradient = load(gradients + j);
        if (dropped->drop) gradient = (vec)((ivec)(gradient * dropped->grow) & staying(dropped, place(query, low + j)));
        product += weight * gradient;
        store(weights + j, weight);
        store(gradients + j, gradient);
    }
    float sum = sum_of(product);
    for (long j = 0; j < span; j += LANES) {
        vec weight = load(weights + j);
        store(gradients + j, weight * (load(gradients + j) - sum));
        if (dropped->drop)
            store(weights + j, (vec)((ivec)(weight * dropped->grow) & staying(dropped, place(query, low + j))));
    }
}

typedef struct {
    const float *query, *key, *value, *out_gradient, *logs;
    float *query_gradient, *key_gradient, *value_gradient;
    long query_step, key_step, value_step, out_step, log_step, query_gradient_step, key_gradient_step,
        value_gradient_step;
} head;

static void one_head_backward(const head *at, long queries, long keys, long width, long reach, float scale,
                              const dropout *dropped, float *scratch) {
    long block = block_size(queries, keys, reach), most = band(block, keys, reach);
    float *turned_keys = scratch, *turned_values = turned_keys + width * most;
    float *weights = turned_values + width * most, *gradients = weights + block * most + TILE;
    float *tile = gradients + block * most + TILE;
    float scales[TILE], ones[TILE];
    for (int i = 0; i < TILE; i++) scales[i] = scale, ones[i] = 1.0f;
    range last = {0, 0};
    for (long j = 0; j < keys; j++) {
        memset(at->key_gradient + j * at->key_gradient_step, 0, sizeof(float) * width);
        memset(at->value_gradient + j * at->value_gradient_step, 0, sizeof(float) * width);
    }
    for (long begin = 0; begin < queries; begin += block) {
        long end = begin + block < queries ? begin + block : queries;
        range near = seen(begin, end - 1, keys, reach);
        long low = whole(near.from), span = vectors(near.to - low);
        if (!equal(near, last)) {
            turn(at->key + low * at->key_step, at->key_step, turned_keys, near.to - low, width, span);
            turn(at->value + low * at->value_step, at->value_step, turned_values, near.to - low, width, span);
        }
        last = near;
        for (long first = begin; first < end; first += TILE) {
            int count = tile_size(first, end);
            float *own_weights = weights + (first - begin) * span, *own_gradients = gradients + (first - begin) * span;
            gather(at->query + first * at->query_step, at->query_step, tile, width, count, scale);
            score(tile, turned_keys, own_weights, width, span, span);
            gather(at->out_gradient + first * at->out_step, at->out_step, tile, width, count, 1.0f);
            score(tile, turned_values, own_gradients, width, span, span);
            for (int i = 0; i < count; i++)
                differentiate(own_weights + i * span, own_gradients + i * span, first + i, low,
                              after(seen(first + i, first + i, keys, reach), low), span,
                              at->logs[(first + i) * at->log_step], dropped);
            weigh(own_gradients, span, 1, at->key + low * at->key_step, at->key_step,
                  at->query_gradient + first * at->query_gradient_step, at->query_gradient_step, scales, near.to - low,
                  width, count, 0);
        }
        for (long first = near.from; first < near.to; first += TILE) {
            int count = tile_size(first, near.to);
            range asking = seen(first, first + count - 1, queries, reach);
            long from = asking.from > begin ? asking.from : begin, to = asking.to < end ? asking.to : end;
            long corner = (from - begin) * span + first - low;
            weigh(weights + corner, 1, span, at->out_gradient + from * at->out_step, at->out_step,
                  at->value_gradient + first * at->value_gradient_step, at->value_gradient_step, ones, to - from, width,
                  count, 1);
            weigh(gradients + corner, 1, span, at->query + from * at->query_step, at->query_step,
                  at->key_gradient + first * at->key_gradient_step, at->key_gradient_step, scales, to - from, width,
                  count, 1);
        }
    }
}

int lanes(void) { return LANES; }

/* [num_rows + 1] prefix sums. */
static void count_up(const int64_t *lengths, int64_t num_rows, int64_t *starts, int64_t *longest) {
    starts[0] = 0;
    for (int64_t row = 0; row < num_rows; row++) {
        starts[row + 1] = starts[row] + lengths[row];
        if (lengths[row] > *longest) *longest = lengths[row];
    }
}

/* Steps are from token to token, in floats; heads lie side by side, `width` apart; `logs` is [tokens][heads] or NULL.
   Returns 1 when memory ran out. */
int attend(const float *query, const float *key, const float *value, float *out, float *logs,
           const int64_t *query_lengths, const int64_t *key_lengths, int64_t num_rows, int64_t num_heads, int64_t width,
           int64_t reach, int64_t query_step, int64_t key_step, int64_t value_step, int64_t out_step, float scale,
           float rate, uint64_t seed, int num_threads) {
    int64_t *starts = malloc(sizeof(int64_t) * 2 * (num_rows + 1));
    if (!starts) return 1;
    int64_t *key_starts = starts + num_rows + 1, most_queries = 1, most_keys = 1;
    count_up(query_lengths, num_rows, starts, &most_queries);
    count_up(key_lengths, num_rows, key_starts, &most_keys);
    long stride = vectors(most_keys);
    int failed = 0;
#pragma omp parallel num_threads(num_threads)
    {
        float *scratch = malloc(sizeof(float) * ((width + TILE) * stride + TILE * width));
        if (!scratch) failed = 1;
#pragma omp for schedule(dynamic, 1)
        for (int64_t piece = 0; piece < num_rows * num_heads; piece++) {
            int64_t row = piece / num_heads, number = piece % num_heads, q = starts[row], k = key_starts[row];
            if (!scratch || !query_lengths[row]) continue;
            dropout dropped = dropout_of(seed, rate, piece);
            one_head(query + q * query_step + number * width, key + k * key_step + number * width,
                     value + k * value_step + number * width, out + q * out_step + number * width,
                     logs ? logs + q * num_heads + number : NULL, num_heads, query_lengths[row], key_lengths[row],
                     width, reach, query_step, key_step, value_step, out_step, scale, &dropped, scratch);
        }
        free(scratch);
    }
    free(starts);
    return failed;
}

/* Gradients of queries, keys and values from the gradient of `out`, with the seed and the logs of the forward call. Every
   one of them is [tokens][heads][width] with a step of its own. Returns 1 when memory ran out. */
int attend_backward(const float *query, const float *key, const float *value, const float *out_gradient,
                    const float *logs, float *query_gradient, float *key_gradient, float *value_gradient,
                    const int64_t *query_lengths, const int64_t *key_lengths, int64_t num_rows, int64_t num_heads,
                    int64_t width, int64_t reach, const int64_t *steps, float scale, float rate, uint64_t seed,
                    int num_threads) {
    int64_t *starts = malloc(sizeof(int64_t) * 2 * (num_rows + 1));
    if (!starts) return 1;
    int64_t *key_starts = starts + num_rows + 1, most_queries = 1, most_keys = 1;
    count_up(query_lengths, num_rows, starts, &most_queries);
    count_up(key_lengths, num_rows, key_starts, &most_keys);
    long stride = vectors(most_keys);
    long held = TILE * stride > BLOCK ? TILE * stride : BLOCK; /* of any row's block */
    int failed = 0;
#pragma omp parallel num_threads(num_threads)
    {
        float *scratch = malloc(sizeof(float) * (2 * width * stride + 2 * (held + TILE) + TILE * width));
        if (!scratch) failed = 1;
#pragma omp for schedule(dynamic, 1)
        for (int64_t piece = 0; piece < num_rows * num_heads; piece++) {
            int64_t row = piece / num_heads, number = piece % num_heads, q = starts[row], k = key_starts[row];
            if (!scratch) continue;
            head at = {query + q * steps[0] + number * width,
                       key + k * steps[1] + number * width,
                       value + k * steps[2] + number * width,
                       out_gradient + q * steps[3] + number * width,
                       logs + q * num_heads + number,
                       query_gradient + q * steps[4] + number * width,
                       key_gradient + k * steps[5] + number * width,
                       value_gradient + k * steps[6] + number * width,
                       steps[0], steps[1], steps[2], steps[3], num_heads, steps[4], steps[5], steps[6]};
            dropout dropped = dropout_of(seed, rate, piece);
            one_head_backward(&at, query_lengths[row], key_lengths[row], width, reach, scale, &dropped, scratch);
        }
        free(scratch);
    }
    free(starts);
    return failed;
}
