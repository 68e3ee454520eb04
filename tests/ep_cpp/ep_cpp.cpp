/*
 * The execution provider OrtcryptCpp: a plugin in C++ that uses ortcrypt/ep_context.hpp and nothing else for its I/O.
 *
 * It takes Mul nodes with two float inputs of one shape. The engine of a node is a line of text, kept under
 * "<prefix><node>.cpp_engine", in the node with embed mode; an engine that says something else is refused.
 */
#define ORT_API_MANUAL_INIT
#include "ep_context.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

#ifndef ORTCRYPT_EP_NAME /* the same EP under a name that no table knows */
#define ORTCRYPT_EP_NAME "OrtcryptCpp"
#endif
constexpr const char *NAME = ORTCRYPT_EP_NAME;
constexpr const char *ENGINE = "OrtcryptCpp engine 1: Mul\n";
constexpr std::size_t ENGINE_MAX = 64; /* bytes */

/* Runs `body`; whatever it throws becomes an OrtStatus. */
template <typename Body> OrtStatus *Guard(Body body) noexcept
{
    try {
        body();
        return nullptr;
    } catch (const Ort::Exception &e) {
        return Ort::GetApi().CreateStatus(e.GetOrtErrorCode(), e.what());
    } catch (const std::exception &e) {
        return Ort::GetApi().CreateStatus(ORT_FAIL, e.what());
    }
}

struct Factory : OrtEpFactory {
    Factory();
    const OrtApi &api = Ort::GetApi();
};

struct Ep : ortcrypt::EpBase {
    explicit Ep(const OrtSessionOptions *session_options);
    void Capability(const OrtGraph *graph, OrtEpGraphSupportInfo *info) const;
    void Compile(const OrtGraph *graph, const OrtNode *fused, OrtNodeComputeInfo **info, OrtNode **context_node) const;
    void Load(const OrtGraph *graph, Ort::ConstNode node) const;
    OrtNode *MakeContextNode(const OrtGraph *graph, const OrtNode *fused) const;

    const OrtApi &api = Ort::GetApi();
    ortcrypt::EpContextConfig config;
    ortcrypt::EpContextOptions options;
};

struct MulInfo : OrtNodeComputeInfo {
    MulInfo();
    static void Run(OrtKernelContext *kernel_context);
};

std::string TextOf(Ort::ConstNode node, const char *name)
{
    Ort::ConstOpAttr attribute{nullptr};
    std::string text;
    Ort::ThrowOnError(node.GetAttributeByName(name, attribute));
    Ort::ThrowOnError(attribute.GetValue(text));
    return text;
}

std::int64_t NumberOf(Ort::ConstNode node, const char *name)
{
    Ort::ConstOpAttr attribute{nullptr};
    std::int64_t number = 0;
    Ort::ThrowOnError(node.GetAttributeByName(name, attribute));
    Ort::ThrowOnError(attribute.GetValue(number));
    return number;
}

bool IsOwnContext(Ort::ConstNode node)
{
    return node.GetOperatorType() == "EPContext" && TextOf(node, "source") == NAME;
}

Ep::Ep(const OrtSessionOptions *session_options)
    : config(session_options), options(ortcrypt::GetEpContextOptions(session_options))
{
    ort_version_supported = 23;
    GetName = [](const OrtEp *) noexcept { return NAME; };
    OrtEp::GetCapability = [](OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info) noexcept {
        return Guard([&] { static_cast<const Ep *>(self)->Capability(graph, info); });
    };
    OrtEp::Compile = [](OrtEp *self, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                        OrtNodeComputeInfo **infos, OrtNode **context_nodes) noexcept {
        return Guard([&] {
            for (size_t i = 0; i < count; i++) {
                static_cast<const Ep *>(self)->Compile(graphs[i], fused[i], &infos[i], &context_nodes[i]);
            }
        });
    };
    ReleaseNodeComputeInfos = [](OrtEp *, OrtNodeComputeInfo **infos, size_t count) noexcept {
        std::for_each(infos, infos + count, [](OrtNodeComputeInfo *info) { delete static_cast<MulInfo *>(info); });
    };
    Ort::ThrowOnError(ortcrypt::AdvertiseEpContextData(api, *this));
}

void Ep::Capability(const OrtGraph *graph, OrtEpGraphSupportInfo *info) const
{
    for (const Ort::ConstNode &node : Ort::ConstGraph{graph}.GetNodes()) {
        if (node.GetOperatorType() == "Mul" || IsOwnContext(node)) {
            const OrtNode *const one = node;
            OrtNodeFusionOptions fusion{};
            fusion.ort_version_supported = 23;
            Ort::ThrowOnError(Ort::GetEpApi().EpGraphSupportInfo_AddNodesToFuse(info, &one, 1, &fusion));
        }
    }
}

void Ep::Load(const OrtGraph *graph, Ort::ConstNode node) const
{
    const std::string content = TextOf(node, "ep_cache_context");
    std::string engine = content;
    if (NumberOf(node, "embed_mode") == 0) {
        ortcrypt::EpContextData data;
        Ort::ThrowOnError(ortcrypt::ReadEpContextData(api, config.get(), content, graph, data, nullptr, ENGINE_MAX));
        engine.assign(data.data() != nullptr ? data.data() : "", data.size());
    }
    if (engine != ENGINE) {
        throw Ort::Exception("this is no engine of OrtcryptCpp", ORT_INVALID_GRAPH);
    }
}

OrtNode *Ep::MakeContextNode(const OrtGraph *graph, const OrtNode *fused) const
{
    const Ort::ConstNode node{fused};
    const bool embed = options.embed_mode.value_or(false);
    const std::string name = options.node_name_prefix.value_or("") + node.GetName() + ".cpp_engine";
    if (!embed) {
        Ort::ThrowOnError(ortcrypt::WriteEpContextDataWithFileFallback(api, config.get(), name.c_str(), graph, ENGINE,
                                                                       std::strlen(ENGINE)));
    }
    const std::string content = embed ? ENGINE : name;
    const std::int64_t yes = 1;
    const std::int64_t mode = embed ? 1 : 0;
    std::vector<Ort::OpAttr> attributes;
    attributes.emplace_back("main_context", &yes, 1, ORT_OP_ATTR_INT);
    attributes.emplace_back("embed_mode", &mode, 1, ORT_OP_ATTR_INT);
    attributes.emplace_back("ep_cache_context", content.data(), static_cast<int>(content.size()), ORT_OP_ATTR_STRING);
    attributes.emplace_back("source", NAME, static_cast<int>(std::strlen(NAME)), ORT_OP_ATTR_STRING);
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    for (const auto &value : node.GetInputs()) {
        inputs.push_back(value.GetName());
    }
    for (const auto &value : node.GetOutputs()) {
        outputs.push_back(value.GetName());
    }
    return Ort::Node("EPContext", "com.microsoft", node.GetName(), inputs, outputs, attributes).release();
}

void Ep::Compile(const OrtGraph *graph, const OrtNode *fused, OrtNodeComputeInfo **info, OrtNode **context_node) const
{
    const Ort::ConstNode node = Ort::ConstGraph{graph}.GetNodes().at(0);
    auto made = std::make_unique<MulInfo>();
    if (IsOwnContext(node)) {
        Load(graph, node);
    } else if (options.enable.value_or(false)) {
        *context_node = MakeContextNode(graph, fused);
    }
    *info = made.release();
}

void MulInfo::Run(OrtKernelContext *kernel_context)
{
    Ort::KernelContext context(kernel_context);
    const Ort::ConstValue a = context.GetInput(0);
    const Ort::ConstValue b = context.GetInput(1);
    const auto shape = a.GetTensorTypeAndShapeInfo().GetShape();
    if (shape != b.GetTensorTypeAndShapeInfo().GetShape()) {
        throw Ort::Exception("OrtcryptCpp multiplies tensors of one shape", ORT_NOT_IMPLEMENTED);
    }
    const std::size_t count = a.GetTensorTypeAndShapeInfo().GetElementCount();
    Ort::UnownedValue product = context.GetOutput(0, shape);
    std::transform(a.GetTensorData<float>(), a.GetTensorData<float>() + count, b.GetTensorData<float>(),
                   product.GetTensorMutableData<float>(), [](float x, float y) { return x * y; });
}

MulInfo::MulInfo() : OrtNodeComputeInfo{}
{
    ort_version_supported = 23;
    CreateState = [](OrtNodeComputeInfo *, OrtNodeComputeContext *, void **state) noexcept -> OrtStatus * {
        *state = nullptr;
        return nullptr;
    };
    Compute = [](OrtNodeComputeInfo *, void *, OrtKernelContext *context) noexcept {
        return Guard([&] { Run(context); });
    };
    ReleaseState = [](OrtNodeComputeInfo *, void *) noexcept {};
}

Factory::Factory() : OrtEpFactory{}
{
    ort_version_supported = 23;
    GetName = [](const OrtEpFactory *) noexcept { return NAME; };
    GetVendor = [](const OrtEpFactory *) noexcept { return "ortcrypt"; };
    GetVendorId = [](const OrtEpFactory *) noexcept -> uint32_t { return 0xffff; };
    GetVersion = [](const OrtEpFactory *) noexcept { return "1.0.0"; };
    GetSupportedDevices = [](OrtEpFactory *self, const OrtHardwareDevice *const *devices, size_t count,
                             OrtEpDevice **out, size_t max, size_t *found) noexcept {
        return Guard([&] {
            *found = 0;
            for (size_t i = 0; i < count && *found < max; i++) {
                if (Ort::GetApi().HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) {
                    Ort::ThrowOnError(Ort::GetEpApi().CreateEpDevice(self, devices[i], nullptr, nullptr, &out[*found]));
                    (*found)++;
                }
            }
        });
    };
    CreateEp = [](OrtEpFactory *, const OrtHardwareDevice *const *, const OrtKeyValuePairs *const *, size_t,
                  const OrtSessionOptions *options, const OrtLogger *, OrtEp **ep) noexcept {
        return Guard([&] { *ep = new Ep(options); });
    };
    ReleaseEp = [](OrtEpFactory *, OrtEp *ep) noexcept { delete static_cast<Ep *>(ep); };
    CreateAllocator = [](OrtEpFactory *, const OrtMemoryInfo *, const OrtKeyValuePairs *,
                         OrtAllocator **allocator) noexcept -> OrtStatus * {
        *allocator = nullptr;
        return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory *, OrtAllocator *) noexcept {};
    CreateDataTransfer = [](OrtEpFactory *, OrtDataTransferImpl **transfer) noexcept -> OrtStatus * {
        *transfer = nullptr;
        return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory *) noexcept { return false; };
}

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED OrtStatus *CreateEpFactories(const char *, const OrtApiBase *base, const OrtLogger *, OrtEpFactory **factories,
                                      size_t max, size_t *count)
{
    unsigned minor = 0;
    if (std::sscanf(base->GetVersionString(), "1.%u", &minor) != 1 || minor < 23) {
        return base->GetApi(1)->CreateStatus(ORT_NOT_IMPLEMENTED, "OrtcryptCpp needs ONNX Runtime 1.23 or a newer 1.x");
    }
    Ort::InitApi(base->GetApi(std::min<uint32_t>(minor, ORT_API_VERSION))); /* asked for more, an older runtime gives none */
    ortcrypt::InitEpContext(base);
    return Guard([&] {
        if (max < 1) {
            throw Ort::Exception("OrtcryptCpp needs room for one factory", ORT_INVALID_ARGUMENT);
        }
        factories[0] = new Factory();
        *count = 1;
    });
}

EXPORTED OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    delete static_cast<Factory *>(factory);
    return nullptr;
}
