/* What compiled kernels need from numba's runtime: memory for their scratch arrays. Calls with numpy's arrays. And what
   the processor can do.

   A kernel allocates arrays, counts references to them and frees them when the count is zero. The layout of an
   allocation is that of numba's NRT_MemInfo, which compiled code knows: the reference count first, the data fourth. */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct allocation {
    size_t references;
    void (*destructor)(void *, size_t, void *);
    void *destructor_argument;
    void *data;
    size_t size;
    void *allocator;
};

/* In front of the data in one block; a multiple of every alignment that kernels ask for. */
#define HEADER 128

struct allocation *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment)
{
    void *block;
    if (alignment > HEADER || posix_memalign(&block, HEADER, HEADER + size) != 0)
        return NULL;
    struct allocation *made = block;
    *made = (struct allocation){1, NULL, NULL, (char *)block + HEADER, size, NULL};
    return made;
}

void NRT_MemInfo_call_dtor(struct allocation *made)
{
    free(made);
}

/* An array of numpy in memory, as PyArrayObject_fields in its C API: inline functions of that API read these members in
   every extension module, so they stay where they are. _library.py compares them with an array before the first call. */
struct array {
    size_t references;
    const void *type;
    const void *data;
    int dimensions;
    const intptr_t *shape;
    const intptr_t *strides;
    const void *base;
    const void *dtype;
    int flags;
};

/* What an argument has to be: an array of this dtype and of numpy's type for arrays, with these flags and one dimension.
   A scalar has no dtype here. */
struct expected {
    const void *dtype;
    const void *type;
    int64_t flags;
};

#define MOST_SLOTS 64
#define NOT_CALLED INT_MIN

/* Call a kernel's entry. An array has two of the given slots: its address as an object, and nothing. The entry gets the
   address of its data, and its length. Without a call if an argument is not as expected. */
int hudi_fast_call(int (*entry)(const uint64_t *, uint64_t *), const uint64_t *given, const struct expected *expected,
                   size_t slots, uint64_t *result)
{
    uint64_t passed[MOST_SLOTS];
    if (slots > MOST_SLOTS)
        return NOT_CALLED;
    for (size_t at = 0; at < slots; at++) {
        passed[at] = given[at];
        if (expected[at].dtype == NULL)
            continue;
        const struct array *one = (const struct array *)(uintptr_t)given[at];
        if (one->type != expected[at].type || one->dtype != expected[at].dtype || one->dimensions != 1
            || (one->flags & expected[at].flags) != expected[at].flags)
            return NOT_CALLED;
        passed[at] = (uint64_t)(uintptr_t)one->data;
        passed[++at] = (uint64_t)one->shape[0];
    }
    return entry(passed, result);
}

/* The x86-64 micro-architecture level of this processor, as the psABI numbers them; 0 on other processors. */
int hudi_fast_cpu_level(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return 4;
    if (__builtin_cpu_supports("x86-64-v3")) return 3;
    if (__builtin_cpu_supports("x86-64-v2")) return 2;
    return 1;
#else
    return 0;
#endif
}
