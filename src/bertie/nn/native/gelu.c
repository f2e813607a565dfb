/* GELU of a linear layer's output and its gradient. The exact form, by the error function. */

#include "vectors.h"

#include <math.h>

/* Minimax x P(x^2) / Q(x^2), some units in the last place; beyond 4 it is 1 in float. */
static inline vec error_function(vec x) {
    x = choose(x > all(4.0f), all(4.0f), choose(x < all(-4.0f), all(-4.0f), x));
    vec square = x * x;
    vec above = all(-2.72614225801306e-10f);
    above = above * square + 2.77068142495902e-08f;
    above = above * square - 2.10102402082508e-06f;
    above = above * square - 5.69250639462346e-05f;
    above = above * square - 7.34990630326855e-04f;
    above = above * square - 2.95459980854025e-03f;
    above = above * square - 1.60960333262415e-02f;
    vec below = all(-1.45660718464996e-05f);
    below = below * square - 2.13374055278905e-04f;
    below = below * square - 1.68282697438203e-03f;
    below = below * square - 7.37332916720468e-03f;
    below = below * square - 1.42647390514189e-02f;
    return x * above / below;
}

static inline vec normal(vec x) { return (error_function(x * 0.70710678f) + 1.0f) * 0.5f; } /* P(X < x) */
static inline vec density(vec x) { return exponential(x * x * -0.5f) * 0.39894228f; }

/* The last numbers of a row, as many as do not fill a vector, go through one all the same. */
static inline vec load_some(const float *from, int64_t count) {
    vec value = all(0.0f);
    for (int64_t lane = 0; lane < count; lane++) value[lane] = from[lane];
    return value;
}
static inline void store_some(float *to, vec value, int64_t count) {
    for (int64_t lane = 0; lane < count; lane++) to[lane] = value[lane];
}

/* x += bias, out = gelu(x), for rows of one width; `out` may be x itself, where x is not wanted afterwards. */
void add_bias_gelu(float *x, const float *bias, float *out, int64_t num_rows, int64_t width, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t row = 0; row < num_rows; row++) {
        float *line = x + row * width, *to = out + row * width;
        int64_t column = 0;
        for (; column + LANES <= width; column += LANES) {
            vec sum = load(line + column) + load(bias + column);
            store(line + column, sum);
            store(to + column, sum * normal(sum));
        }
        vec sum = load_some(line + column, width - column) + load_some(bias + column, width - column);
        store_some(line + column, sum, width - column);
        store_some(to + column, sum * normal(sum), width - column);
    }
}

/* gradient *= gelu'(x) */
void gelu_backward(const float *x, float *gradient, int64_t size, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t begin = 0; begin < size; begin += 4096) {
        int64_t end = begin + 4096 < size ? begin + 4096 : size, at = begin;
        for (; at + LANES <= end; at += LANES) {
            vec value = load(x + at);
            store(gradient + at, load(gradient + at) * (normal(value) + value * density(value)));
        }
        vec value = load_some(x + at, end - at);
        store_some(gradient + at, load_some(gradient + at, end - at) * (normal(value) + value * density(value)), end - at);
    }
}
