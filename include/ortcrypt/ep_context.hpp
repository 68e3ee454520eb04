/*
 * ortcrypt/ep_context.hpp: EPContext data callbacks for EPs in C++17, over ep_context.h, on every era of ONNX Runtime.
 *
 * Names and signatures are those of "Compiled Model Encryption" (there Ort::Experimental::EpContextConfig and the sample
 * ep_context_data_utils), so that an EP written for one builds with the other.
 * Call order: CreateEpFactories: InitEpContext ; CreateEp: EpContextConfig, AdvertiseEpContextData ; Compile: ReadEpContextData,
 * WriteEpContextDataWithFileFallback. An application that links libonnxruntime need not call InitEpContext.
 * Who includes this links ep_context.c's single file (ortcrypt_ep_context.c) or libortcrypt. Threads and contract: ep_context.h.
 */
#ifndef ORTCRYPT_EP_CONTEXT_HPP
#define ORTCRYPT_EP_CONTEXT_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <onnxruntime_cxx_api.h>

#include "ep_context.h"

namespace ortcrypt {
namespace detail {

/* Hidden: two EPs in one process may have been given two different OrtApiBase. */
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline const OrtApiBase *&EpContextBase() noexcept
{
#ifdef ORT_API_MANUAL_INIT
    static const OrtApiBase *base = nullptr;
#else
    static const OrtApiBase *base = OrtGetApiBase();
#endif
    return base;
}

/* The six functions; throws what finding them said. */
inline ortcrypt_ep_context_api EpContextFunctions()
{
    ortcrypt_ep_context_api api{};
    const OrtApiBase *const base = EpContextBase();
    if (base == nullptr) {
        ORT_CXX_API_THROW("ortcrypt::InitEpContext was not called", ORT_FAIL);
    }
    Ort::ThrowOnError(ortcrypt_ep_context_api_get(base, &api));
    return api;
}

/* True for a handle of a context that has its callbacks by id: see ORTCRYPT_EP_CONTEXT_AS_CONFIG. */
inline bool IsById(const OrtEpContextConfig *config) noexcept
{
    return (reinterpret_cast<std::uintptr_t>(config) & 1) != 0;
}

inline ortcrypt_ep_context *ById(const OrtEpContextConfig *config) noexcept
{
    return reinterpret_cast<ortcrypt_ep_context *>(reinterpret_cast<std::uintptr_t>(config) - 1);
}

inline bool NamesId(const OrtSessionOptions *options)
{
    const OrtApi &api = Ort::GetApi();
    int present = 0;
    std::size_t size = 0;
    Ort::ThrowOnError(api.HasSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, &present));
    if (present != 0) {
        Ort::ThrowOnError(api.GetSessionConfigEntry(options, ORTCRYPT_EP_CONTEXT_ID_KEY, nullptr, &size));
    }
    return size > 1; /* with the final NUL: empty is absent */
}

/* What an id's context does, as the two callbacks with a state. */
inline OrtStatus *ORT_API_CALL ReadById(void *state, const char *name, OrtAllocator *allocator, void **buffer, std::size_t *size)
{
    ortcrypt_ep_context_data data = ORTCRYPT_EP_CONTEXT_DATA_INIT;
    OrtStatus *const status =
        ortcrypt_ep_context_read(static_cast<ortcrypt_ep_context *>(state), name, nullptr, allocator, 0, &data);
    *buffer = data.memory; /* the caller's, who has the allocator */
    *size = data.size;
    return status;
}

inline OrtStatus *ORT_API_CALL WriteById(void *state, const char *name, const void *buffer, std::size_t size)
{
    return ortcrypt_ep_context_write(static_cast<ortcrypt_ep_context *>(state), name, nullptr, nullptr, buffer, size);
}

/* A context for one call. */
class EpContext {
  public:
    EpContext() = default;
    EpContext(const EpContext &) = delete;
    EpContext &operator=(const EpContext &) = delete;
    ~EpContext() { ortcrypt_ep_context_close(context_); }

    OrtStatus *Open(const OrtApi &api, const OrtEpContextConfig *config) noexcept
    {
        const OrtApiBase *const base = EpContextBase();
        if (base == nullptr) {
            return api.CreateStatus(ORT_FAIL, "ortcrypt::InitEpContext was not called");
        }
        OrtStatus *const status = ortcrypt_ep_context_open_config(&context_, base, config);
        return status != nullptr || context_ != nullptr ? status : api.CreateStatus(ORT_FAIL, "ONNX Runtime is no 1.x");
    }
    const ortcrypt_ep_context *get() const noexcept { return context_; }

  private:
    ortcrypt_ep_context *context_ = nullptr;
};

} // namespace detail

/* Call in CreateEpFactories, with its argument, beside Ort::InitApi. */
inline void InitEpContext(const OrtApiBase *base) noexcept
{
    detail::EpContextBase() = base;
}

/*
 * Owns ORT's OrtEpContextConfig, or one of our own where the session names its callbacks by id (ep_context.h). Construct in
 * CreateEp, keep for the EP's life. On runtimes before 1.28, which have none, it is empty without an id, and the getters answer
 * nullptr: files are used. Constructors throw Ort::Exception with ORT's error.
 */
class EpContextConfig {
  public:
    explicit EpContextConfig(std::nullptr_t) noexcept {}
    explicit EpContextConfig(const Ort::SessionOptions &session_options) : EpContextConfig(session_options.GetConst()) {}
    explicit EpContextConfig(Ort::ConstSessionOptions session_options)
        : EpContextConfig(static_cast<const OrtSessionOptions *>(session_options))
    {
    }
    /* As CreateEp has it. */
    explicit EpContextConfig(const OrtSessionOptions *session_options)
    {
        const ortcrypt_ep_context_api api = detail::EpContextFunctions();
        if (detail::NamesId(session_options)) {
            ortcrypt_ep_context *context = nullptr;
            Ort::ThrowOnError(ortcrypt_ep_context_open(&context, detail::EpContextBase(), session_options));
            config_ = ORTCRYPT_EP_CONTEXT_AS_CONFIG(context);
        } else if (api.era != ORTCRYPT_ERA_NONE) {
            Ort::ThrowOnError(api.SessionOptions_GetEpContextConfig(session_options, &config_));
        }
    }

    EpContextConfig(EpContextConfig &&other) noexcept : config_(other.release()) {}
    EpContextConfig &operator=(EpContextConfig &&other) noexcept
    {
        if (this != &other) {
            reset();
            config_ = other.release();
        }
        return *this;
    }
    EpContextConfig(const EpContextConfig &) = delete;
    EpContextConfig &operator=(const EpContextConfig &) = delete;
    ~EpContextConfig() { reset(); }

    OrtEpContextConfig *get() const noexcept { return config_; }
    explicit operator bool() const noexcept { return config_ != nullptr; }

    /* The caller's from now on; freed with Release (ORT's, and only that, also with OrtEpApi_ReleaseEpContextConfig). */
    OrtEpContextConfig *release() noexcept { return std::exchange(config_, nullptr); }

    void reset() noexcept { Release(release()); }

    static void Release(OrtEpContextConfig *config) noexcept
    {
        if (detail::IsById(config)) {
            ortcrypt_ep_context_close(detail::ById(config));
        } else if (config != nullptr) {
            ortcrypt_ep_context_api api{};
            /* cannot refuse: the handle came from the same runtime */
            (void)ortcrypt_ep_context_api_get(detail::EpContextBase(), &api);
            api.ReleaseEpContextConfig(config);
        }
    }

    /*
     * nullptr and nullptr when the application set none. On an empty one (moved from, made of nullptr) ORT_INVALID_ARGUMENT is
     * thrown, as "no callback" would mean a file. What they give may be called as long as this object, or what release gave, is there.
     */
    void GetReadFunc(OrtReadNamedBufferFunc &read_func, void *&state) const
    {
        if (detail::IsById(config_)) {
            read_func = detail::ReadById;
            state = detail::ById(config_);
            return;
        }
        Get(read_func, state, &ortcrypt_ep_context_api::EpContextConfig_GetEpContextDataReadFunc);
    }
    void GetWriteFunc(OrtWriteNamedBufferFunc &write_func, void *&state) const
    {
        if (detail::IsById(config_)) {
            write_func = detail::WriteById;
            state = detail::ById(config_);
            return;
        }
        Get(write_func, state, &ortcrypt_ep_context_api::EpContextConfig_GetEpContextDataWriteFunc);
    }

  private:
    template <typename Func, typename Getter> void Get(Func &func, void *&state, Getter getter) const
    {
        const ortcrypt_ep_context_api api = detail::EpContextFunctions();
        if (api.era == ORTCRYPT_ERA_NONE) {
            func = nullptr;
            state = nullptr;
            return;
        }
        if (config_ == nullptr) {
            ORT_CXX_API_THROW("the EpContextConfig is empty", ORT_INVALID_ARGUMENT);
        }
        Ort::ThrowOnError((api.*getter)(config_, &func, &state));
    }

    OrtEpContextConfig *config_ = nullptr;
};

/* Owns the bytes of one read; the allocator they came from must outlive it. */
class EpContextData {
  public:
    EpContextData() noexcept = default;
    EpContextData(EpContextData &&other) noexcept : data_(std::exchange(other.data_, Empty())) {}
    EpContextData &operator=(EpContextData &&other) noexcept
    {
        if (this != &other) {
            ortcrypt_ep_context_data_release(&data_);
            data_ = std::exchange(other.data_, Empty());
        }
        return *this;
    }
    EpContextData(const EpContextData &) = delete;
    EpContextData &operator=(const EpContextData &) = delete;
    ~EpContextData() { ortcrypt_ep_context_data_release(&data_); }

    /* Valid until destroyed or assigned to; may be nullptr when empty. */
    const char *data() const noexcept { return static_cast<const char *>(data_.data); }
    std::size_t size() const noexcept { return data_.size; }
    bool empty() const noexcept { return data_.size == 0; }

  private:
    friend OrtStatus *ReadEpContextData(const OrtApi &, const OrtEpContextConfig *, const char *, const OrtGraph *,
                                        EpContextData &, OrtAllocator *, std::size_t);

    static ortcrypt_ep_context_data Empty() noexcept { return ORTCRYPT_EP_CONTEXT_DATA_INIT; }

    ortcrypt_ep_context_data data_ = ORTCRYPT_EP_CONTEXT_DATA_INIT;
};

/*
 * Reads as ortcrypt_ep_context_read does. config: nullptr means a file. `out` is emptied first, and stays so on an error.
 * allocator: nullptr for ORT's default. max_size: the largest size accepted, in bytes; 0 for no limit.
 */
inline OrtStatus *ReadEpContextData(const OrtApi &api, const OrtEpContextConfig *config, const char *file_name,
                                    const OrtGraph *graph, EpContextData &out, OrtAllocator *allocator = nullptr,
                                    std::size_t max_size = 0)
{
    detail::EpContext context;
    out = EpContextData();
    OrtStatus *const status = context.Open(api, config);
    return status != nullptr
               ? status
               : ortcrypt_ep_context_read(context.get(), file_name, graph, allocator, max_size, &out.data_);
}

/* The same for a name with a length, as an attribute has it: one with a NUL in it is refused. */
inline OrtStatus *ReadEpContextData(const OrtApi &api, const OrtEpContextConfig *config, const std::string &file_name,
                                    const OrtGraph *graph, EpContextData &out, OrtAllocator *allocator = nullptr,
                                    std::size_t max_size = 0)
{
    if (!ortcrypt_ep_context_is_name(file_name.c_str(), file_name.size())) {
        out = EpContextData();
        return api.CreateStatus(ORT_INVALID_ARGUMENT, "the name of the EPContext data has a NUL in it");
    }
    return ReadEpContextData(api, config, file_name.c_str(), graph, out, allocator, max_size);
}

/* Writes as ortcrypt_ep_context_write does; `fallback_file_name` is for the file only. */
inline OrtStatus *WriteEpContextDataWithFileFallback(const OrtApi &api, const OrtEpContextConfig *config,
                                                     const char *file_name, const char *fallback_file_name,
                                                     const OrtGraph *graph, const void *buffer, std::size_t buffer_size)
{
    detail::EpContext context;
    OrtStatus *const status = context.Open(api, config);
    return status != nullptr ? status
                             : ortcrypt_ep_context_write(context.get(), file_name, fallback_file_name, graph, buffer,
                                                         buffer_size);
}

inline OrtStatus *WriteEpContextDataWithFileFallback(const OrtApi &api, const OrtEpContextConfig *config,
                                                     const char *file_name, const OrtGraph *graph, const void *buffer,
                                                     std::size_t buffer_size)
{
    return WriteEpContextDataWithFileFallback(api, config, file_name, nullptr, graph, buffer, buffer_size);
}

/* A base for an EP's class: OrtEp with room for the member that _advertise sets. Zeroed; fill the members as usual. */
struct EpBase : OrtEp {
    EpBase() noexcept : OrtEp{} {}
    unsigned char room[ORTCRYPT_EP_ROOM > sizeof(OrtEp) ? ORTCRYPT_EP_ROOM - sizeof(OrtEp) : 1] = {};
};

/* Call in CreateEp, last: see ortcrypt_ep_context_advertise. */
inline OrtStatus *AdvertiseEpContextData(const OrtApi &api, EpBase &ep,
                                         std::uint32_t flags = ORTCRYPT_EP_CONTEXT_READS | ORTCRYPT_EP_CONTEXT_WRITES)
{
    detail::EpContext context;
    OrtStatus *const status = context.Open(api, nullptr);
    return status != nullptr ? status : ortcrypt_ep_context_advertise(context.get(), &ep, sizeof(ep), flags);
}

/* ortcrypt_ep_context_get_options with texts of its own; nullopt: absent. */
struct EpContextOptions {
    std::optional<bool> enable, embed_mode, share, stop_share, weightless;
    std::optional<std::string> file_path, node_name_prefix, source_model_path;
};

/* Throws Ort::Exception for a value that is neither "0" nor "1", and for a text that is no path. */
inline EpContextOptions GetEpContextOptions(const OrtSessionOptions *session_options)
{
    struct Closer {
        ortcrypt_ep_context *context = nullptr;
        ~Closer() { ortcrypt_ep_context_close(context); }
    } opened;
    ortcrypt_ep_context_options found{};
    (void)detail::EpContextFunctions(); /* throws without a base */
    Ort::ThrowOnError(ortcrypt_ep_context_open(&opened.context, detail::EpContextBase(), session_options));
    Ort::ThrowOnError(ortcrypt_ep_context_get_options(opened.context, &found));
    const auto flag = [](ortcrypt_ep_context_flag f) { return f.present ? std::optional<bool>(f.value) : std::nullopt; };
    const auto text = [](const char *t) { return t != nullptr ? std::optional<std::string>(t) : std::nullopt; };
    return {flag(found.enable),    flag(found.embed_mode),      flag(found.share),
            flag(found.stop_share), flag(found.weightless),      text(found.file_path),
            text(found.node_name_prefix), text(found.source_model_path)};
}

} // namespace ortcrypt

#endif
