/* Calls cuInit and says what it answers: one line, "cuInit=RESULT count=GPUS version=DRIVER'S CUDA", exit status 0.
 *
 * It has libcuda.so.1 as its only library and none of libc: the loader finds and starts libcuda just as for any
 * program, so a node needs neither Python nor a certain glibc. Without a libcuda.so.1 it is the loader that says so
 * (exit status 127). What the driver API's functions take and answer: cuInit, cuDeviceGetCount, cuDriverGetVersion.
 * Built by `./dev cuinit`; tests/operations/test_cuinit.py builds it again and compares.
 */
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuDriverGetVersion(int *version);

#if defined(__x86_64__)
enum { WRITE = 1, EXIT_GROUP = 231 };
__asm__(".globl _start\n_start: xor %ebp, %ebp\n and $-16, %rsp\n call run\n");
static long call(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
enum { WRITE = 64, EXIT_GROUP = 94 };
__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n bl run\n");
static long call(long number, long a, long b, long c)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
#endif

static char *text(char *to, const char *from)
{
    while (*from)
        *to++ = *from++;
    return to;
}

static char *number(char *to, int value)
{
    char digits[10];
    int n = 0;
    unsigned left = value < 0 ? -(unsigned)value : (unsigned)value;
    if (value < 0)
        *to++ = '-';
    do
        digits[n++] = '0' + left % 10;
    while (left /= 10);
    while (n)
        *to++ = digits[--n];
    return to;
}

__attribute__((noreturn, used)) void run(void)
{
    char line[80], *end = line;
    int count = -1, version = 0, result = cuInit(0);
    if (result == 0) {
        int failed = cuDeviceGetCount(&count);
        if (failed)
            result = failed;
        cuDriverGetVersion(&version);
    }
    end = number(text(end, "cuInit="), result);
    end = number(text(end, " count="), count);
    end = number(text(end, " version="), version);
    end = text(end, "\n");
    call(WRITE, 1, (long)line, end - line);
    for (;;)
        call(EXIT_GROUP, 0, 0, 0);
}
