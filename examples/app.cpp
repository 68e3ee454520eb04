/*
 * A whole application in C++: handles that close themselves around ortcrypt, ONNX Runtime's own C++ API for the rest.
 *
 *     app BUNDLE IDENTITY-FILE LIBONNXRUNTIME [EP-LIBRARY]
 *
 * Prints what whole_app prints.
 */
#define ORT_API_MANUAL_INIT // the library is loaded at run time: Ort::InitApi below
#include <onnxruntime_cxx_api.h>
#include <ortcrypt/session.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::array<int64_t, 4> kShape = {1, 3, 48, 320};
constexpr size_t kPixels = 3 * 48 * 320;
constexpr size_t kClasses = 6625;

/* A status of ortcrypt as an exception. */
class Error : public std::runtime_error {
public:
    explicit Error(const ortcrypt_error &err) : std::runtime_error(std::string(err.message) + "\n" + err.hint), status(err.status) {}
    const ortcrypt_status status;
};

/* Calls f(arguments..., &error) and throws what it says. */
template <typename F, typename... Arguments> void check(F f, Arguments... arguments)
{
    ortcrypt_error err = ORTCRYPT_ERROR_INIT;
    if (f(arguments..., &err) != ORTCRYPT_OK) {
        throw Error(err);
    }
}

struct Close {
    void operator()(ortcrypt_keyring *keyring) const { ortcrypt_keyring_free(keyring); }
    void operator()(ortcrypt_session *session) const { ortcrypt_session_close(session); }
    /* Both refuse while something uses them, which the order of Model's members rules out. */
    void operator()(ortcrypt_bundle *bundle) const { [[maybe_unused]] const auto st = ortcrypt_bundle_close(bundle, nullptr); }
    void operator()(ortcrypt_runtime *runtime) const { [[maybe_unused]] const auto st = ortcrypt_runtime_close(runtime, nullptr); }
};
template <typename T> using Handle = std::unique_ptr<T, Close>;

/* make<ortcrypt_bundle>(ortcrypt_bundle_open, path, keyring, options): what the call gives out, owned. */
template <typename T, typename F, typename... Arguments> Handle<T> make(F f, Arguments... arguments)
{
    T *made = nullptr;
    check(f, &made, arguments...);
    return Handle<T>(made);
}

/* Members are destroyed from the last to the first: the session before the bundle and the runtime that it uses. */
class Model {
public:
    Model(const char *path, const char *identity, const char *library, const char *ep_library)
        : runtime_(make<ortcrypt_runtime>(ortcrypt_runtime_open, library, nullptr)),
          keyring_(make<ortcrypt_keyring>(ortcrypt_keyring_new))
    {
        ortcrypt_session_options options = {};
        options.struct_size = sizeof(options);
        options.ep = ep_library != nullptr ? "OrtcryptReference" : nullptr;
        options.ep_library = ep_library;
        check(ortcrypt_keyring_add_identity_file, keyring_.get(), identity);
        bundle_ = make<ortcrypt_bundle>(ortcrypt_bundle_open, path, keyring_.get(), nullptr);
        session_ = make<ortcrypt_session>(ortcrypt_session_open, runtime_.get(), bundle_.get(), &options);
        Ort::InitApi(ortcrypt_runtime_api(runtime_.get()));
    }

    std::vector<float> operator()(std::vector<float> &image) const
    {
        static const char *const in_name = "x", *const out_name = "softmax_11.tmp_0";
        const auto cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
        const auto in = Ort::Value::CreateTensor<float>(cpu, image.data(), image.size(), kShape.data(), kShape.size());
        Ort::UnownedSession session(ortcrypt_session_ort(session_.get()));
        const auto outs = session.Run(Ort::RunOptions{nullptr}, &in_name, &in, 1, &out_name, 1);
        const float *const data = outs[0].GetTensorData<float>();
        return {data, data + outs[0].GetTensorTypeAndShapeInfo().GetElementCount()};
    }

private:
    Handle<ortcrypt_runtime> runtime_;
    Handle<ortcrypt_keyring> keyring_;
    Handle<ortcrypt_bundle> bundle_;
    Handle<ortcrypt_session> session_;
};

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4) {
        std::fprintf(stderr, "app BUNDLE IDENTITY-FILE LIBONNXRUNTIME [EP-LIBRARY]\n");
        return 2;
    }
    setenv("ORT_DISABLE_TELEMETRY", "1", 1); // before ONNX Runtime is loaded: some versions write model metadata to disk
    try {
        const Model model(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : nullptr);
        std::vector<float> image(kPixels);
        for (size_t i = 0; i < image.size(); i++) {
            image[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
        }
        const std::vector<float> p = model(image);
        for (auto step = p.begin(); step != p.end(); step += kClasses) {
            const auto best = std::max_element(step, step + kClasses);
            std::printf("%td %.9g\n", best - step, static_cast<double>(*best));
        }
        return 0;
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
}
