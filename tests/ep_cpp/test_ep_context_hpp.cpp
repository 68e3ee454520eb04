/*
 * ortcrypt/ep_context.hpp on one runtime. Usage: test_ep_context_hpp LIBONNXRUNTIME ERA (0, 1 or 2)
 * Checked: the wrapper's members, ownership, both functions with callbacks and with files, and that nothing leaks or is freed twice.
 */
#define ORT_API_MANUAL_INIT
#include "ep_context.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <type_traits>
#include <unistd.h>

using ortcrypt::EpContextConfig;
using ortcrypt::EpContextData;
using ortcrypt::ReadEpContextData;
using ortcrypt::WriteEpContextDataWithFileFallback;

static_assert(!std::is_copy_constructible_v<EpContextConfig> && !std::is_copy_assignable_v<EpContextConfig>);
static_assert(std::is_nothrow_move_constructible_v<EpContextConfig> && std::is_nothrow_move_assignable_v<EpContextConfig>);
static_assert(!std::is_copy_constructible_v<EpContextData> && !std::is_copy_assignable_v<EpContextData>);
static_assert(std::is_nothrow_move_constructible_v<EpContextData> && std::is_nothrow_move_assignable_v<EpContextData>);
static_assert(std::is_constructible_v<EpContextConfig, std::nullptr_t> &&
              std::is_constructible_v<EpContextConfig, const Ort::SessionOptions &> &&
              std::is_constructible_v<EpContextConfig, Ort::ConstSessionOptions>);
static_assert(!std::is_convertible_v<Ort::ConstSessionOptions, EpContextConfig> && !std::is_convertible_v<EpContextConfig, bool>);

#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

static void Ok(OrtStatus *status)
{
    Ort::ThrowOnError(status);
}

static void Refused(OrtStatus *status, OrtErrorCode code, const char *part)
{
    const Ort::Status owned{status};
    CHECK(status != nullptr);
    if (owned.GetErrorMessage().find(part) == std::string::npos || owned.GetErrorCode() != code) {
        std::fprintf(stderr, "expected \"%s\" in: %s\n", part, owned.GetErrorMessage().c_str());
        std::exit(1);
    }
}

struct Counter : OrtAllocator {
    Counter() : OrtAllocator{}
    {
        version = 16;
        OrtAllocator::Alloc = [](OrtAllocator *self, size_t size) -> void * {
            auto *const me = static_cast<Counter *>(self);
            me->live++;
            return me->last = std::malloc(size);
        };
        OrtAllocator::Free = [](OrtAllocator *self, void *memory) {
            static_cast<Counter *>(self)->live -= memory != nullptr ? 1 : 0;
            std::free(memory);
        };
    }
    int live = 0;
    void *last = nullptr;
};

struct Source {
    std::string name; /* as it arrived */
    std::string bytes = "engine";
    bool fail = false;
};

static OrtStatus *ORT_API_CALL ReadSource(void *state, const char *name, OrtAllocator *allocator, void **buffer, size_t *size)
{
    auto *const source = static_cast<Source *>(state);
    source->name = name;
    *size = source->bytes.size();
    *buffer = allocator->Alloc(allocator, *size);
    std::memcpy(*buffer, source->bytes.data(), *size);
    return source->fail ? Ort::GetApi().CreateStatus(ORT_ENGINE_ERROR, "mine") : nullptr;
}

static OrtErrorCode Thrown(const EpContextConfig &config)
{
    OrtReadNamedBufferFunc read = nullptr;
    void *state = nullptr;
    try {
        config.GetReadFunc(read, state);
    } catch (const Ort::Exception &e) {
        return e.GetOrtErrorCode();
    }
    return ORT_OK;
}

static void TestConfig(const ortcrypt_ep_context_api &six)
{
    Source source;
    OrtReadNamedBufferFunc read = nullptr;
    OrtWriteNamedBufferFunc write = [](void *, const char *, const void *, size_t) -> OrtStatus * { return nullptr; };
    void *state = &source;
    auto *options = new Ort::SessionOptions;
    Ok(six.SessionOptions_SetEpContextDataReadFunc(*options, ReadSource, &source));
    EpContextConfig config{*options};
    EpContextConfig as_const{options->GetConst()};
    Ok(six.SessionOptions_SetEpContextDataReadFunc(*options, nullptr, nullptr));
    const EpContextConfig cleared{*options};
    delete options;
    CHECK(config && config.get() != nullptr && as_const.get() != config.get());
    config.GetReadFunc(read, state);
    CHECK(read == ReadSource && state == &source);
    config.GetWriteFunc(write, state);
    CHECK(write == nullptr && state == nullptr);
    cleared.GetReadFunc(read, state);
    CHECK(read == nullptr && state == nullptr);

    OrtEpContextConfig *const handle = config.get();
    EpContextConfig moved{std::move(config)};
    CHECK(moved.get() == handle && !config); // NOLINT: what a move leaves is part of the contract
    CHECK(Thrown(config) == ORT_INVALID_ARGUMENT);
    as_const = std::move(moved);
    CHECK(as_const.get() == handle && !moved); // NOLINT
    EpContextConfig &same = as_const;
    as_const = std::move(same);
    CHECK(as_const.get() == handle);
    CHECK(as_const.release() == handle && !as_const);
    six.ReleaseEpContextConfig(handle);
    as_const.reset();
    as_const.reset();
}

static void TestReadCallback(const ortcrypt_ep_context_api &six)
{
    const OrtApi &api = Ort::GetApi();
    Source source;
    Counter memory;
    Ort::SessionOptions options;
    Ok(six.SessionOptions_SetEpContextDataReadFunc(options, ReadSource, &source));
    const EpContextConfig config{options};
    {
        EpContextData data;
        Ok(ReadEpContextData(api, config.get(), "../any name", nullptr, data, &memory));
        CHECK(source.name == "../any name" && data.data() == memory.last && data.size() == 6 && !data.empty());
        EpContextData other = std::move(data);
        CHECK(data.empty() && data.data() == nullptr && other.size() == 6); // NOLINT
        data = std::move(other);
        Ok(ReadEpContextData(api, config.get(), std::string("again"), nullptr, data, &memory));
        CHECK(memory.live == 1); /* what was in it is freed */
        Refused(ReadEpContextData(api, config.get(), "x", nullptr, data, &memory, 5), ORT_FAIL, "at most 5 are accepted");
        CHECK(data.empty() && memory.live == 0);
        Refused(ReadEpContextData(api, config.get(), std::string("a\0b", 3), nullptr, data, &memory), ORT_INVALID_ARGUMENT, "a NUL");
        CHECK(source.name == "x");
        source.fail = true;
        Refused(ReadEpContextData(api, config.get(), "x", nullptr, data, &memory), ORT_ENGINE_ERROR, "mine");
        CHECK(data.empty() && memory.live == 0);
        source.fail = false;
        Ok(ReadEpContextData(api, config.get(), "x", nullptr, data, &memory));
    }
    CHECK(memory.live == 0);
}

static void TestFiles(const std::string &folder)
{
    const OrtApi &api = Ort::GetApi();
    const std::string path = folder + "/a.bin";
    const std::string other = folder + "/b.bin";
    EpContextData data;
    Ok(WriteEpContextDataWithFileFallback(api, nullptr, path.c_str(), nullptr, "bytes", 5));
    Ok(ReadEpContextData(api, nullptr, path.c_str(), nullptr, data));
    CHECK(std::string(data.data(), data.size()) == "bytes");
    Ok(WriteEpContextDataWithFileFallback(api, nullptr, "../logical", other.c_str(), nullptr, nullptr, 0));
    Ok(ReadEpContextData(api, nullptr, other, nullptr, data));
    CHECK(data.empty() && data.size() == 0);
    Refused(ReadEpContextData(api, nullptr, (folder + "/none").c_str(), nullptr, data), ORT_NO_SUCHFILE, "does not exist");
    Refused(ReadEpContextData(api, nullptr, "", nullptr, data), ORT_INVALID_ARGUMENT, "is empty");
    Refused(WriteEpContextDataWithFileFallback(api, nullptr, "x", "", nullptr, nullptr, 0), ORT_INVALID_ARGUMENT, "is empty");
    Refused(WriteEpContextDataWithFileFallback(api, nullptr, path.c_str(), nullptr, nullptr, 1), ORT_INVALID_ARGUMENT, "the bytes");
    CHECK(unlink(path.c_str()) == 0 && unlink(other.c_str()) == 0);
}

static void TestOptions()
{
    Ort::SessionOptions options;
    options.AddConfigEntry("ep.context_enable", "1");
    options.AddConfigEntry("ep.context_embed_mode", "0");
    options.AddConfigEntry("ep.context_file_path", "/a/b.onnx");
    const ortcrypt::EpContextOptions found = ortcrypt::GetEpContextOptions(options);
    CHECK(found.enable == true && found.embed_mode == false && !found.share && found.file_path == "/a/b.onnx");
    CHECK(!found.node_name_prefix && !found.weightless);
    options.AddConfigEntry("ep.context_embed_mode", "2");
    try {
        (void)ortcrypt::GetEpContextOptions(options);
        CHECK(false);
    } catch (const Ort::Exception &e) {
        CHECK(e.GetOrtErrorCode() == ORT_INVALID_ARGUMENT && std::strstr(e.what(), "ep.context_embed_mode is 0 or 1, not \"2\"") != nullptr);
    }
}

/* Callbacks by id: on every runtime, with a configuration of our own. */
static const char *const ID = "00112233445566778899aabbccddeeff";
static std::string stored;
static bool closed;

static std::uint32_t ORT_API_CALL FindId(const char *id)
{
    return std::strcmp(id, ID) == 0 && !closed ? 3u : 0u;
}
static OrtStatus *ORT_API_CALL ReadId(const char *id, const OrtApi *api, const char *name, OrtAllocator *allocator, void **buffer, size_t *size)
{
    (void)name;
    if (FindId(id) == 0) {
        return api->CreateStatus(ORT_FAIL, "closed");
    }
    *size = stored.size();
    *buffer = allocator->Alloc(allocator, *size);
    std::memcpy(*buffer, stored.data(), *size);
    return nullptr;
}
static OrtStatus *ORT_API_CALL WriteId(const char *id, const OrtApi *api, const char *name, const void *buffer, size_t size)
{
    (void)name;
    stored.assign(static_cast<const char *>(buffer), size);
    return FindId(id) == 0 ? api->CreateStatus(ORT_FAIL, "closed") : nullptr;
}

static void TestById()
{
    static const ortcrypt_ep_registry registry{sizeof(registry), FindId, ReadId, WriteId};
    const OrtApi &api = Ort::GetApi();
    OrtReadNamedBufferFunc read = nullptr;
    OrtWriteNamedBufferFunc write = nullptr;
    void *state = nullptr;
    void *buffer = nullptr;
    size_t size = 0;
    Counter memory;
    EpContextData data;
    Ort::SessionOptions options;
    options.AddConfigEntry(ORTCRYPT_EP_CONTEXT_ID_KEY, ID);
    try {
        const EpContextConfig unknown{options};
        CHECK(false);
    } catch (const Ort::Exception &e) {
        CHECK(std::strstr(e.what(), "callbacks that are not there") != nullptr);
    }
    CHECK(ortcrypt_ep_attach(&registry));
    EpContextConfig first{options};
    EpContextConfig config{std::move(first)};
    CHECK(!first && config); // NOLINT
    Ok(WriteEpContextDataWithFileFallback(api, config.get(), "n", nullptr, "engine", 6));
    Ok(ReadEpContextData(api, config.get(), "n", nullptr, data, &memory));
    CHECK(std::string(data.data(), data.size()) == "engine" && stored == "engine");
    config.GetReadFunc(read, state);
    Ok(read(state, "n", &memory, &buffer, &size));
    CHECK(size == 6 && memory.live == 2);
    memory.Free(&memory, buffer);
    config.GetWriteFunc(write, state);
    Ok(write(state, "n", "other", 5));
    CHECK(stored == "other");
    closed = true;
    Refused(ReadEpContextData(api, config.get(), "n", nullptr, data, &memory), ORT_FAIL, "callbacks that are not there");
    Refused(read(state, "n", &memory, &buffer, &size), ORT_FAIL, "closed");
    CHECK(buffer == nullptr && size == 0 && memory.live == 0);
    closed = false;
    EpContextConfig::Release(config.release());
    CHECK(!config);
    EpContextConfig::Release(nullptr);
}

/* Before 1.28 there is nothing to own: no callbacks, so files. */
static void TestFirstEra()
{
    OrtReadNamedBufferFunc read = ReadSource;
    OrtWriteNamedBufferFunc write = nullptr;
    void *state = &read;
    const Ort::SessionOptions options;
    const EpContextConfig config{options};
    CHECK(!config);
    config.GetReadFunc(read, state);
    CHECK(read == nullptr && state == nullptr);
    config.GetWriteFunc(write, state);
    CHECK(write == nullptr);
}

static void TestAdvertise(int era)
{
    ortcrypt::EpBase ep;
    CHECK(sizeof(ep) >= ORTCRYPT_EP_ROOM);
    ep.ort_version_supported = 23;
    Ok(ortcrypt::AdvertiseEpContextData(Ort::GetApi(), ep));
    CHECK(ep.ort_version_supported == (era == ORTCRYPT_ERA_STABLE ? 31u : 23u));
    Refused(ortcrypt::AdvertiseEpContextData(Ort::GetApi(), ep, 4), ORT_INVALID_ARGUMENT, "flags");
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    void *const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    const OrtApiBase *(*get)() = nullptr;
    void *const symbol = dlsym(library, "OrtGetApiBase");
    std::memcpy(&get, &symbol, sizeof(get));
    const OrtApiBase *const base = get();
    const int era = std::atoi(argv[2]);
    EpContextData data;
    Ort::InitApi(base->GetApi(24));
    Refused(ReadEpContextData(Ort::GetApi(), nullptr, "x", nullptr, data), ORT_FAIL, "InitEpContext was not called");
    ortcrypt::InitEpContext(base);
    const Ort::Env env{ORT_LOGGING_LEVEL_ERROR, "test"};

    ortcrypt_ep_context_api six{};
    Ok(ortcrypt_ep_context_api_get(base, &six));
    CHECK(six.era == era);
    const EpContextConfig none{nullptr};
    CHECK(!none && none.get() == nullptr);
    std::string folder = "/tmp/ortcrypt-hpp-XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    if (era == ORTCRYPT_ERA_NONE) {
        TestFirstEra();
    } else {
        CHECK(Thrown(none) == ORT_INVALID_ARGUMENT);
        TestConfig(six);
        TestReadCallback(six);
    }
    TestById();
    TestFiles(folder);
    TestOptions();
    TestAdvertise(era);
    CHECK(rmdir(folder.c_str()) == 0);
    std::printf("ep_context.hpp on ONNX Runtime %s\n", base->GetVersionString());
    return 0;
}
