/*
 * Execution providers with one fault each: OrtcryptCpp, with what it uses for its I/O replaced by something that misbehaves. FAULT_<NAME>
 * is defined by the build. docs/ep-authors.md says what is wrong about each.
 */
#define ORT_API_MANUAL_INIT
#include "ep_context.hpp"

#include <cstdlib>
#include <memory>
#include <unistd.h>

namespace ortcrypt {

/* What goes wrong goes wrong with callbacks only: without, all of them are as sound as OrtcryptCpp. */
inline bool HasWriteCallback(const OrtEpContextConfig *config)
{
    OrtWriteNamedBufferFunc func = nullptr;
    void *state = nullptr;
    const ortcrypt_ep_context_api api = detail::EpContextFunctions();
    return api.era != ORTCRYPT_ERA_NONE && config != nullptr &&
           api.EpContextConfig_GetEpContextDataWriteFunc(config, &func, &state) == nullptr && func != nullptr;
}

/* Writes `name` with and without the application's callback, as the fault has it. */
inline OrtStatus *BrokenWrite(const OrtApi &api, const OrtEpContextConfig *config, const char *name, const OrtGraph *graph,
                              const void *buffer, std::size_t size)
{
    if (!HasWriteCallback(config)) {
        return WriteEpContextDataWithFileFallback(api, config, name, graph, buffer, size);
    }
#if defined(FAULT_FILE) /* the callback is not asked for */
    return WriteEpContextDataWithFileFallback(api, nullptr, name, nullptr, buffer, size);
#elif defined(FAULT_SILENT) /* keeps it to itself: nobody has the data */
    return nullptr;
#elif defined(FAULT_SWALLOW) /* goes on as if it had been stored */
    if (OrtStatus *const refused = WriteEpContextDataWithFileFallback(api, config, name, graph, buffer, size)) {
        api.ReleaseStatus(refused);
    }
    return nullptr;
#elif defined(FAULT_FALLBACK) /* what was refused goes to a file */
    OrtStatus *const refused = WriteEpContextDataWithFileFallback(api, config, name, graph, buffer, size);
    if (refused != nullptr) {
        if (OrtStatus *const no_file = WriteEpContextDataWithFileFallback(api, nullptr, name, nullptr, buffer, size)) {
            api.ReleaseStatus(no_file);
        }
    }
    return refused;
#elif defined(FAULT_CRASH)
    std::abort();
#elif defined(FAULT_HANG)
    for (;;) {
        (void)pause();
    }
#else
    return WriteEpContextDataWithFileFallback(api, config, name, graph, buffer, size);
#endif
}

inline OrtStatus *BrokenRead(const OrtApi &api, const OrtEpContextConfig *config, const std::string &name, const OrtGraph *graph,
                             EpContextData &out, OrtAllocator *allocator, std::size_t max_size)
{
#if defined(FAULT_ALLOCATOR) /* a first copy, freed with something else than the allocator it came from */
    auto *const first = new EpContextData;
    if (OrtStatus *const refused = ReadEpContextData(api, config, name, graph, *first, allocator, max_size)) {
        delete first;
        return refused;
    }
    std::free(const_cast<char *>(first->data()));
#endif
#if defined(FAULT_DEAF) /* looks for a file, although there is a callback */
    OrtReadNamedBufferFunc func = nullptr;
    void *state = nullptr;
    const bool deaf = config != nullptr &&
                      detail::EpContextFunctions().EpContextConfig_GetEpContextDataReadFunc(config, &func, &state) == nullptr && func != nullptr;
    OrtStatus *const refused = ReadEpContextData(api, deaf ? nullptr : config, name, deaf ? nullptr : graph, out, allocator, max_size);
#else
    OrtStatus *const refused = ReadEpContextData(api, config, name, graph, out, allocator, max_size);
#endif
#if defined(FAULT_CUT) /* reads behind the end */
    if (refused == nullptr && out.size() != 0 && out.size() < 26) {
        std::abort();
    }
#endif
    return refused;
}

/* The configuration, which FAULT_LEAK never releases. */
class BrokenConfig : public EpContextConfig {
  public:
    using EpContextConfig::EpContextConfig;
#if defined(FAULT_LEAK)
    ~BrokenConfig() { (void)release(); }
#endif
};

#if defined(FAULT_MUTE) /* uses the callbacks and does not say so */
inline OrtStatus *BrokenAdvertise(const OrtApi &, EpBase &) { return nullptr; }
#else
inline OrtStatus *BrokenAdvertise(const OrtApi &api, EpBase &ep) { return AdvertiseEpContextData(api, ep); }
#endif

} // namespace ortcrypt

#define WriteEpContextDataWithFileFallback BrokenWrite
#define ReadEpContextData BrokenRead
#define EpContextConfig BrokenConfig
#define AdvertiseEpContextData BrokenAdvertise
#include "../../ep_cpp/ep_cpp.cpp"
