/* What compiled kernels need from numba's runtime: memory for their scratch arrays. And what the processor can do.

   A kernel allocates arrays, counts references to them and frees them when the count is zero. The layout of an
   allocation is that of numba's NRT_MemInfo, which compiled code knows: the reference count first, the data fourth. */

#include <stddef.h>
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
