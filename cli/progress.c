/* cli/progress.c: the monitor every long call gets. The bar is drawn on standard error, only when that is a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "terminal.h"

#define REDRAW_NS 100000000u /* at most ten times a second; a step shorter than that shows nothing */
#define BAR_MAX 30

static struct {
    const char *step;    /* the step being shown */
    uint64_t start_ns;   /* when it began */
    uint64_t start_done; /* bytes done then */
    uint64_t drawn_ns;
    bool visible;
} bar;

static uint64_t now_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int terminal_width(void)
{
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void cli_progress_clear(void)
{
    if (bar.visible) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        bar.visible = false;
    }
}

static void remaining_text(char out[24], double seconds)
{
    if (seconds < 0 || seconds > 359999) {
        out[0] = 0;
    } else if (seconds < 3600) {
        (void)snprintf(out, 24, "%d:%02d left", (int)seconds / 60, (int)seconds % 60);
    } else {
        (void)snprintf(out, 24, "%d:%02d:%02d left", (int)seconds / 3600, (int)seconds / 60 % 60, (int)seconds % 60);
    }
}

/* "encrypting [#####-----] 12.0 MiB of 24.0 MiB, 310.0 MiB/s, 0:01 left", cut to the terminal's width. */
static void draw(const char *step, uint64_t done, uint64_t total, double seconds)
{
    char done_text[24];
    char total_text[24];
    char rate_text[24];
    char left_text[24] = "";
    char blocks[BAR_MAX + 1] = "";
    char line[256];
    const uint64_t moved = done > bar.start_done ? done - bar.start_done : 0;
    const double rate = seconds > 0 ? (double)moved / seconds : 0;
    const int width = terminal_width();
    cli_size_text(done_text, done);
    cli_size_text(total_text, total);
    cli_size_text(rate_text, (uint64_t)rate);
    if (total != 0) {
        const int cells = width >= 110 ? BAR_MAX : width >= 90 ? 16 : 8;
        const double part = done >= total ? 1 : (double)done / (double)total;
        const int full = (int)(part * cells);
        (void)memset(blocks, '#', (size_t)full);
        (void)memset(blocks + full, '-', (size_t)(cells - full));
        remaining_text(left_text, rate > 0 && done <= total ? (double)(total - done) / rate : -1);
        (void)snprintf(line, sizeof line, "%s [%s] %s of %s, %s/s%s%s", step, blocks, done_text, total_text, rate_text,
                       left_text[0] != 0 ? ", " : "", left_text);
    } else {
        (void)snprintf(line, sizeof line, "%s %s, %s/s", step, done_text, rate_text);
    }
    (void)fprintf(stderr, "\r\033[K%.*s", width - 1, line);
    (void)fflush(stderr);
    bar.visible = true;
}

static int on_progress(void *state, const char *step, uint64_t done, uint64_t total)
{
    (void)state;
    if (isatty(STDERR_FILENO) == 1) {
        const uint64_t now = now_ns();
        if (bar.step == NULL || strcmp(bar.step, step) != 0) {
            cli_progress_clear();
            bar.step = step;
            bar.start_ns = now;
            bar.start_done = done;
            bar.drawn_ns = now;
        } else if (now - bar.drawn_ns >= REDRAW_NS) {
            bar.drawn_ns = now;
            draw(step, done, total, (double)(now - bar.start_ns) / 1e9);
        }
    }
    return cli_interrupted() ? 1 : 0;
}

static void on_notice(void *state, const char *sentence)
{
    (void)state;
    cli_print_note("%s", sentence);
}

ortcrypt_monitor cli_monitor(void)
{
    return (ortcrypt_monitor){.notice = on_notice, .progress = on_progress, .state = NULL};
}
