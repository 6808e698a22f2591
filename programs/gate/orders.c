// Orders that a team of helpers prices and ships. The gate's campaign changes it and builds it again
// (crates/testkit/src/gate.rs has the changes as edits of these lines).
//
// build: -pthread
#include <pthread.h>
#include <stdio.h>

enum { ORDERS = 48, HELPERS = 3, SHELVES = 5 };

struct order {
    int number, weight, price;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct order queue[2 * ORDERS];
static int first, last, closed, shelves[SHELVES], shipped;

void parse(int number, struct order *order) {
    order->number = number;
    order->weight = number * 7 % 30;
    order->price = 0;
}

int valid(const struct order *order) {
    return order->weight > 2;
}

void push(const struct order *order) {
    pthread_mutex_lock(&mutex);
    queue[last++] = *order;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

int take(struct order *order) {
    pthread_mutex_lock(&mutex);
    while (first == last && !closed)
        pthread_cond_wait(&changed, &mutex);
    int got = first < last;
    if (got)
        *order = queue[first++];
    pthread_mutex_unlock(&mutex);
    return got;
}

void set_price(struct order *order) {
    order->price = order->weight * 3 + order->number % 4;
}

void discount(struct order *order) {
    order->price -= order->price / 10;
}

void ship(const struct order *order) {
    pthread_mutex_lock(&mutex);
    shelves[order->number % SHELVES] += order->price;
    shipped++;
    pthread_mutex_unlock(&mutex);
}

static void *help(void *unused) {
    struct order order;
    while (take(&order)) {
        set_price(&order);
        if (order.weight > 20)
            discount(&order);
        ship(&order);
    }
    return unused;
}

int count(int shelf) {
    pthread_mutex_lock(&mutex);
    int found = shelves[shelf];
    pthread_mutex_unlock(&mutex);
    return found;
}

void print(int total) {
    printf("%d orders, %d\n", shipped, total);
}

int main(void) {
    pthread_t helpers[HELPERS];
    for (int i = 0; i < HELPERS; i++)
        pthread_create(&helpers[i], NULL, help, NULL);
    for (int i = 0; i < ORDERS; i++) {
        struct order order;
        parse(i, &order);
        if (valid(&order))
            push(&order);
    }
    pthread_mutex_lock(&mutex);
    closed = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < HELPERS; i++)
        pthread_join(helpers[i], NULL);
    int total = 0;
    for (int shelf = 0; shelf < SHELVES; shelf++)
        total += count(shelf);
    print(total);
    return 0;
}
