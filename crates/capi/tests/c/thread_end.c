/* A thread that is ending calls Apus in all rounds of the destructors of its thread-specific values. */
#include <apus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MILLISECOND UINT64_C(1000000)

static pthread_key_t key;
static apus_connection *here, *there;
static apus_region *region;
static apus_queue *queue;
static int rounds[] = { 1, 2, 3, 4 };
static int done;

static void check(int status, int right, const char *what)
{
    if (status != right) {
        fprintf(stderr, "%s: status %d: %s\n", what, status, apus_last_error());
        exit(1);
    }
}

static void calls(void)
{
    char byte;
    size_t count;
    uint64_t word;
    apus_completion end;
    apus_op op = { .queue = queue };
    check(apus_region_lock(region, APUS_FOREVER), APUS_OK, "apus_region_lock");
    check(apus_region_store(region, 0, 1), APUS_INVALID, "apus_region_store");
    check(apus_poll(queue, &end, 1, MILLISECOND, &count), APUS_INVALID, "apus_poll");
    check(apus_region_unlock(region), APUS_OK, "apus_region_unlock");
    check(apus_region_fetch_add(region, 0, 1, &word), APUS_OK, "apus_region_fetch_add");
    check(apus_poll(queue, &end, 1, MILLISECOND, &count), APUS_TIMEOUT, "apus_poll");
    check(apus_send(here, &op, "m", 1, NULL), APUS_OK, "apus_send");
    check(apus_poll(queue, &end, 1, APUS_FOREVER, &count), APUS_OK, "apus_poll");
    check(end.status, APUS_OK, "the op");
    check(apus_receive(there, &byte, 1, APUS_FOREVER, &count, NULL), APUS_OK, "apus_receive");
}

static void late(void *round)
{
    int number = *(int *)round;
    calls();
    if (number < 4)
        pthread_setspecific(key, &rounds[number]);
    else
        check(apus_close(here, APUS_FOREVER), APUS_OK, "apus_close");
    done = number;
}

static void *run(void *unused)
{
    calls();
    /* Created after the library's keys, so the library's destructors run before this one. */
    check(pthread_key_create(&key, late), 0, "pthread_key_create");
    pthread_setspecific(key, &rounds[0]);
    return unused;
}

int main(void)
{
    apus_config *config;
    apus_host *host, *other;
    check(apus_config_create_insecure("127.0.0.1:0", &config), APUS_OK, "apus_config_create_insecure");
    check(apus_host_start(config, &host), APUS_OK, "apus_host_start");
    check(apus_host_start(config, &other), APUS_OK, "apus_host_start");
    apus_config_free(config);
    check(apus_connect(host, apus_host_address(other), 1, APUS_FOREVER, &here), APUS_OK, "apus_connect");
    check(apus_accept(other, APUS_FOREVER, &there), APUS_OK, "apus_accept");
    static uint64_t memory;
    check(apus_region_register(host, &memory, sizeof memory, APUS_READ, &region), APUS_OK, "apus_region_register");
    check(apus_queue_create(host, 1, &queue), APUS_OK, "apus_queue_create");
    pthread_t thread;
    check(pthread_create(&thread, NULL, run, NULL), 0, "pthread_create");
    check(pthread_join(thread, NULL), 0, "pthread_join");
    uint64_t word;
    check(apus_region_load(region, 0, &word), APUS_OK, "apus_region_load");
    check((int)word, 5, "all rounds");
    check(done, 4, "the last round");
    apus_connection_free(here);
    apus_connection_free(there);
    apus_queue_free(queue);
    apus_region_free(region);
    apus_host_free(host);
    apus_host_free(other);
    return 0;
}
