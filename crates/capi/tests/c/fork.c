/* A forked process uses and frees handles of its parent. The parent's connections continue. */
#define _POSIX_C_SOURCE 200809L
#include <apus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int right, const char *what)
{
    if (!right) {
        fprintf(stderr, "%s: %s\n", what, apus_last_error());
        _exit(1);
    }
}

static apus_host *start(void)
{
    apus_config *config;
    apus_host *host;
    check(apus_config_create_insecure("127.0.0.1:0", &config) == APUS_OK, "apus_config_create_insecure");
    check(apus_host_start(config, &host) == APUS_OK, "apus_host_start");
    apus_config_free(config);
    return host;
}

int main(void)
{
    apus_host *server = start(), *client = start();
    apus_connection *here, *there;
    check(apus_connect(client, apus_host_address(server), 1, APUS_FOREVER, &here) == APUS_OK, "apus_connect");
    check(apus_accept(server, APUS_FOREVER, &there) == APUS_OK, "apus_accept");
    static char memory[8];
    apus_region *region;
    check(apus_region_register(server, memory, sizeof memory, APUS_READ | APUS_WRITE, &region) == APUS_OK,
          "apus_region_register");
    apus_queue *queue;
    check(apus_queue_create(client, 1, &queue) == APUS_OK, "apus_queue_create");
    apus_op op = { .queue = queue };
    apus_completion end;
    apus_connection *other;
    size_t count;
    uint64_t word;

    pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
        alarm(300); /* ends a wait for threads that the child does not have */
        check(apus_send(here, &op, "child", 5, NULL) == APUS_INVALID, "apus_send");
        check(strstr(apus_last_error(), "start a host in this process") != NULL, "its text");
        check(apus_poll(queue, &end, 1, 0, &count) == APUS_INVALID, "apus_poll");
        check(apus_accept(server, 0, &other) == APUS_INVALID, "apus_accept");
        check(apus_region_load(region, 0, &word) == APUS_INVALID, "apus_region_load");
        check(apus_host_drain(server, 0) == APUS_INVALID, "apus_host_drain");
        apus_connection_free(here);
        apus_connection_free(there);
        apus_queue_free(queue);
        apus_region_free(region);
        apus_host_free(server);
        apus_host_free(client);
        apus_host_free(start());
        /* Runs another program, because a leak checker would report memory that the parent's threads hold. */
        execlp("true", "true", (char *)NULL);
        check(0, "execlp");
    }
    int status;
    check(waitpid(child, &status, 0) == child && status == 0, "the child");

    char message[8];
    size_t length;
    check(apus_send(here, &op, "parent", 6, NULL) == APUS_OK, "apus_send");
    check(apus_poll(queue, &end, 1, APUS_FOREVER, &count) == APUS_OK && end.status == APUS_OK, "apus_poll");
    check(apus_receive(there, message, sizeof message, APUS_FOREVER, &length, NULL) == APUS_OK, "apus_receive");
    check(length == 6 && memcmp(message, "parent", 6) == 0, "the message");
    check(apus_write(here, &op, apus_region_key(region), 0, "12345678", 8, NULL) == APUS_OK, "apus_write");
    check(apus_poll(queue, &end, 1, APUS_FOREVER, &count) == APUS_OK && end.status == APUS_OK, "apus_poll");
    check(apus_region_load(region, 0, &word) == APUS_OK && word == UINT64_C(0x3837363534333231), "apus_region_load");
    apus_connection_free(here);
    apus_connection_free(there);
    apus_queue_free(queue);
    apus_region_free(region);
    apus_host_free(server);
    apus_host_free(client);
    return 0;
}
