/* x = gelu(x + bias), in place, for rows of one width. The exact form, by the error function. */

#include <math.h>
#include <stdint.h>

#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif

typedef float vec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

static inline vec all(float value) { return value - (vec){0}; }
static inline vec choose(ivec which, vec yes, vec no) { return (vec)(((ivec)yes & which) | ((ivec)no & ~which)); }

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

static inline vec gelu(vec x) { return x * 0.5f * (error_function(x * 0.70710678f) + 1.0f); }

void add_bias_gelu(float *x, const float *bias, int64_t num_rows, int64_t width, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t row = 0; row < num_rows; row++) {
        float *line = x + row * width;
        int64_t column = 0;
        for (; column + LANES <= width; column += LANES) {
            vec *place = (vec *)(line + column);
            *place = gelu(*place + *(const vec *)(bias + column));
        }
        for (; column < width; column++) {
            float sum = line[column] + bias[column];
            line[column] = sum * 0.5f * (erff(sum * 0.70710678f) + 1.0f);
        }
    }
}
