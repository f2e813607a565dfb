/* Cross entropy of rows of logits, the gradient of the logits in their place, whether the target was the first choice, and
   a choice drawn by chance.

   A row of a usual vocabulary stays in the second cache while it is gone over three times. */

#include "vectors.h"

#include <math.h>

#define STRETCH (16 * LANES)

/* Of at most STRETCH numbers from a place on. */
static double sum_between(const float *row, int64_t first, int64_t size) {
    int64_t end = first + STRETCH < size ? first + STRETCH : size, column = first;
    vec total = all(0.0f);
    for (; column + LANES <= end; column += LANES) total += load(row + column);
    double sum = sum_of(total);
    for (; column < end; column++) sum += row[column];
    return sum;
}

static int is_first_choice(const float *row, int64_t target, float highest) {
    if (row[target] != highest) return 0;
    for (int64_t column = 0; column < target; column++)
        if (row[column] == highest) return 0;
    return 1;
}

/* The row becomes logits by adding the bias; the highest is returned. */
static float highest_of(float *row, const float *bias, int64_t size) {
    vec high = all(-INFINITY);
    int64_t column = 0;
    for (; column + LANES <= size; column += LANES) {
        vec logit = load(row + column) + load(bias + column);
        store(row + column, logit);
        high = larger(logit, high);
    }
    float highest = largest_of(high);
    for (; column < size; column++) {
        row[column] += bias[column];
        highest = row[column] > highest ? row[column] : highest;
    }
    return highest;
}

/* The row becomes e^(logit - highest); their sum is returned. */
static float exponentials(float *row, int64_t size, float highest) {
    vec total = all(0.0f);
    int64_t column = 0;
    for (; column + LANES <= size; column += LANES) {
        vec logit = load(row + column), value = exponential(logit - highest);
        store(row + column, value);
        total += value + (logit - logit); /* a logit that is not finite must not go unseen */
    }
    float sum = sum_of(total);
    for (; column < size; column++) {
        float logit = row[column];
        row[column] = expf(logit - highest);
        sum += row[column] + (logit - logit);
    }
    return sum;
}

/* The first place that with all before it has at least this share of the whole row. */
static int64_t draw(const float *row, int64_t size, double share) {
    double whole = 0.0, before = 0.0;
    int64_t column = 0;
    for (int64_t first = 0; first < size; first += STRETCH) whole += sum_between(row, first, size);
    for (; column + STRETCH < size; column += STRETCH) {
        double next = before + sum_between(row, column, size);
        if (next >= share * whole) break;
        before = next;
    }
    for (; column < size - 1; column++)
        if ((before += row[column]) >= share * whole) break;
    return column;
}

/* products [num_rows][size] are logits without their bias and become the gradients of each row's loss. `dice` [num_rows],
   from 0 to 1, decide what is drawn; NULL where nothing is. */
void cross_entropy(float *products, const float *bias, const int64_t *targets, const float *dice, float *losses,
                   float *correct, int64_t *drawn, int64_t num_rows, int64_t size, int num_threads) {
#pragma omp parallel for num_threads(num_threads)
    for (int64_t number = 0; number < num_rows; number++) {
        float *row = products + number * size, highest = highest_of(row, bias, size);
        int64_t target = targets[number];
        correct[number] = (float)is_first_choice(row, target, highest);
        float above = highest - row[target], sum = exponentials(row, size, highest), inverse = 1.0f / sum;
        losses[number] = logf(sum) + above;
        if (dice) drawn[number] = draw(row, size, dice[number]);
        int64_t column = 0;
        for (; column + LANES <= size; column += LANES) store(row + column, load(row + column) * inverse);
        for (; column < size; column++) row[column] *= inverse;
        row[target] -= 1.0f;
    }
}
