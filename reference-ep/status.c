/* Sentences as OrtStatus. */
#include <stdarg.h>
#include <stdio.h>

#include "reference_ep.h"

OrtStatus *oc_ref_status(const OrtApi *api, OrtErrorCode code, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    return api->CreateStatus(code, sentence); /* ORT copies the text */
}

OrtStatus *oc_ref_explain(const OrtApi *api, OrtStatus *status, const char *what)
{
    if (status == NULL) {
        return NULL;
    }
    OrtStatus *const longer =
        oc_ref_status(api, api->GetErrorCode(status), "%s: %.1500s", what, api->GetErrorMessage(status));
    api->ReleaseStatus(status);
    return longer;
}
