/* Sentences as OrtStatus. */
#include <stdarg.h>
#include <stdio.h>

#include "ep_context/internal.h"

OrtStatus *oc_ep_status(const OrtApi *api, OrtErrorCode code, const char *format, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return api->CreateStatus(code, sentence); /* ORT copies the text */
}
