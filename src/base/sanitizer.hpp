#pragma once

/// Defines SKEIN_ADDRESS_SANITIZER or SKEIN_THREAD_SANITIZER in a build with that sanitizer. GCC and Clang name them
/// differently.
#if defined(__SANITIZE_ADDRESS__)
#define SKEIN_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define SKEIN_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SKEIN_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define SKEIN_THREAD_SANITIZER 1
#endif
#endif
