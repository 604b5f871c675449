// The header in C++.
#include <apus.h>
#include <cstdio>

int main()
{
    apus_config *config = nullptr;
    const int status = apus_config_create(nullptr, nullptr, &config);
    std::printf("%d %s: %s\n", status, apus_reason_text(APUS_REASON_DEADLINE), apus_last_error());
    apus_config_free(config);
    return status == APUS_INVALID ? 0 : 1;
}
