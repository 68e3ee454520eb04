/* cli/table.c: every option and every verb of the command line. Help, parsing, man pages and completion are made from these rows. */
#include "cli.h"

#define KEYS "Keys"
#define TRUST "What the bundle must be"
#define ORT "Runtime"
#define SANDBOX "Sandbox"
#define CACHE "Compiling just in time"
#define GENERAL "General"

const cli_option CLI_OPTIONS[] = {
    /* what is written */
    {OPT_OUTPUT, "output", 'o', VALUE_FILE, "FILE", NULL, false, "Output", CLI_KEYGEN,
     "Write the identity to FILE (mode 0600), which must not exist. Without it the identity goes to standard output."},
    {OPT_OUTPUT, "output", 'o', VALUE_FOLDER, "BUNDLE", NULL, false, "Output", CLI_ENCRYPT,
     "The bundle to make: a folder that must not exist. Required."},
    {OPT_OUTPUT, "output", 'o', VALUE_FOLDER, "BUNDLE", NULL, false, "Output", CLI_COMPILE,
     "Leave the bundle as it is and write a new one with everything in it and the new variant. BUNDLE must not exist."},
    {OPT_OUTPUT, "output", 'o', VALUE_FOLDER, "DIR", NULL, false, "Output", CLI_RUN,
     "Write each output to DIR/<name>.npy. DIR must not exist; characters of a name other than letters, digits, '.', '_' and '-' become '_'."},
    {OPT_OUTPUT, "output", 'o', VALUE_FOLDER, "DIR", NULL, false, "Output", CLI_DECRYPT,
     "The folder to make for the original files; it must not exist. Required."},

    /* encrypt */
    {OPT_EXTRA, "extra", 0, VALUE_FILE, "FILE", NULL, true, "Content", CLI_ENCRYPT,
     "Ship FILE along (tokenizer, labels, ...), under its last path component. May be repeated."},
    {OPT_LABEL, "label", 0, VALUE_PAIR, "KEY=VALUE", NULL, true, "Content", CLI_ENCRYPT,
     "Keep a label in the manifest, encrypted like everything else. May be repeated."},

    {OPT_SPLIT, "split", 0, VALUE_NONE, NULL, NULL, false, "Content", CLI_ENCRYPT,
     "Move embedded weights out of the model, so that ONNX Runtime borrows them instead of parsing them. Default: when they are more than "
     "64 MiB. decrypt gives back the original file, byte for byte, all the same."},
    {OPT_NO_SPLIT, "no-split", 0, VALUE_NONE, NULL, NULL, false, "Content", CLI_ENCRYPT,
     "Leave embedded weights in the model, whatever their size."},

    /* keys, writing */
    {OPT_RECIPIENT, "recipient", 'r', VALUE_TEXT, "AGE1...", NULL, true, KEYS, CLI_ENCRYPT,
     "Encrypt to this recipient. May be repeated: each of them can open the bundle."},
    {OPT_RECIPIENTS_FILE, "recipients-file", 'R', VALUE_FILE, "FILE", NULL, true, KEYS, CLI_ENCRYPT,
     "Encrypt to every recipient in FILE: one a line, lines that begin with # are comments. May be repeated."},
    {OPT_RECIPIENT_COMMAND, "recipient-command", 0, VALUE_TEXT, "COMMAND", NULL, false, KEYS, CLI_ENCRYPT,
     "Let COMMAND wrap the key: the secret comes on its standard input, the key file is what it writes. No shell: words are split at "
     "spaces, quotes keep them together. With an installed age: 'age -e -R ssh_key.pub'."},

    /* keys, opening */
    {OPT_IDENTITY, "identity", 'i', VALUE_FILE, "ID", NULL, true, KEYS, CLI_OPENING,
     "Open with the identities in file ID (or a pipe, as in -i <(command)); '-' reads standard input, 'fd:N' an inherited descriptor, "
     "'env:NAME' an environment variable (read, wiped and unset before anything is loaded). May be repeated. Default: the file that ORTCRYPT_IDENTITY names."},
    {OPT_IDENTITY_COMMAND, "identity-command", 0, VALUE_TEXT, "COMMAND", NULL, false, KEYS, CLI_OPENING,
     "Let COMMAND unwrap the key: the key file comes on its standard input, what it writes is the secret. No shell. With an installed "
     "age: 'age -d -i ssh_key'."},
    {OPT_PASSPHRASE, "passphrase", 'p', VALUE_NONE, NULL, NULL, false, KEYS, CLI_ENCRYPT,
     "Encrypt with a passphrase, asked for twice on the terminal. Excludes recipients, as in age."},
    {OPT_PASSPHRASE, "passphrase", 'p', VALUE_NONE, NULL, NULL, false, KEYS, CLI_OPENING,
     "Open with a passphrase, asked for on the terminal."},
    {OPT_PASSPHRASE_FD, "passphrase-fd", 0, VALUE_NUMBER, "N", NULL, false, KEYS, CLI_ENCRYPT | CLI_OPENING,
     "Read the passphrase from the inherited descriptor N instead: its first line, without the newline."},

    /* trust */
    {OPT_BUNDLE_ID, "bundle-id", 0, VALUE_TEXT, "ID", NULL, false, TRUST, CLI_OPENING,
     "Refuse a bundle with another id (32 lower-case hex digits)."},
    {OPT_PIN, "pin", 0, VALUE_TEXT, "M", NULL, false, TRUST, CLI_OPENING,
     "Refuse any state of the bundle but this one: M is the SHA-256 of the manifest file (64 lower-case hex digits), as encrypt, compile "
     "and inspect print it."},
    {OPT_MIN_SEQUENCE, "min-sequence", 0, VALUE_NUMBER, "N", NULL, false, TRUST, CLI_OPENING,
     "Refuse a state older than sequence N: every change of a bundle counts one up."},

    /* execution provider */
    {OPT_EP, "ep", 0, VALUE_TEXT, "NAME[=LIBRARY]", NULL, false, "Execution provider", CLI_COMPILE,
     "The execution provider that compiles, and its plugin library. OrtcryptReference needs no library: it comes along. Required."},
    {OPT_EP, "ep", 0, VALUE_TEXT, "NAME[=LIBRARY]", NULL, false, "Execution provider", CLI_RUN,
     "The execution provider that runs the model, and its plugin library. OrtcryptReference needs no library: it comes along. Default: "
     "ONNX Runtime's CPU execution provider."},
    {OPT_EP, "ep", 0, VALUE_TEXT, "NAME[=LIBRARY]", NULL, true, "Execution provider", CLI_EPS,
     "Register this plugin library first. OrtcryptReference needs no library: it comes along. May be repeated."},
    {OPT_EP, "ep", 0, VALUE_TEXT, "NAME", NULL, false, "Execution provider", CLI_CHECK_EP,
     "The name to register the library under: some execution providers take it for their own. Default: what is right for the known ones."},
    {OPT_EP_OPTION, "ep-option", 0, VALUE_PAIR, "KEY=VALUE", NULL, true, "Execution provider", CLI_COMPILE | CLI_RUN | CLI_CHECK_EP,
     "An option for the execution provider. May be repeated."},
    {OPT_PROBE, "probe", 0, VALUE_NONE, NULL, NULL, false, "Execution provider", CLI_EPS,
     "Try out every device of every execution provider that compiles, with a model that is no secret, in a program of its own that can write "
     "no file, and print what that proved."},
    {OPT_EP_OPTION, "ep-option", 0, VALUE_PAIR, "KEY=VALUE", NULL, true, "Execution provider", CLI_EPS,
     "An option for the execution providers while they are tried out. May be repeated."},

    /* compile */
    {OPT_VARIANT, "variant", 0, VALUE_TEXT, "ID", NULL, false, "Compiling", CLI_COMPILE,
     "Name of the new variant: 1 to 64 letters, digits, '.', '_' or '-'. Default: made from the execution provider's name."},
    {OPT_EMBED, "embed", 0, VALUE_NONE, NULL, NULL, false, "Compiling", CLI_COMPILE,
     "Keep the compiled blobs inside the model instead of beside it; possible below 2 GiB."},
    {OPT_WEIGHTLESS, "weightless", 0, VALUE_NONE, NULL, NULL, false, "Compiling", CLI_COMPILE,
     "Leave the weights in the source variant instead of compiling them in (ONNX Runtime 1.29 on, where the execution provider can). They "
     "are decrypted at every load and stay in memory as long as the session."},
    {OPT_OPTIMIZE, "optimize", 0, VALUE_CHOICE, "none|basic|extended|all", "none|basic|extended|all", false, "Compiling", CLI_COMPILE,
     "What ONNX Runtime's optimizer does before the execution provider sees the graph. Default: nothing. Some execution providers take a "
     "graph whole only after 'basic' (QNN does)."},
    {OPT_REWRITE, "rewrite", 0, VALUE_CHOICE, "same|replace|append", "same|replace|append", false, "Compiling", CLI_COMPILE,
     "What a second write of the same name means: accepted when its bytes are the same (default), the last one counts, or bytes are "
     "appended (for an execution provider that documents chunks)."},
    {OPT_INITIALIZER_MIN, "initializer-min", 0, VALUE_NUMBER, "BYTES", NULL, false, "Compiling", CLI_COMPILE,
     "Weights of at least this many bytes are stored each by itself, smaller ones inside the model. Default: 1024."},
    {OPT_ALLOW_NONE_COMPILED, "allow-none-compiled", 0, VALUE_NONE, NULL, NULL, false, "Compiling", CLI_COMPILE,
     "Accept a result in which the execution provider took no node."},
    {OPT_NO_LOAD_CHECK, "no-load-check", 0, VALUE_NONE, NULL, NULL, false, "Compiling", CLI_COMPILE,
     "Do not load the result before it is published (its device is not here); the variant is recorded as unverified."},

    /* run */
    {OPT_VARIANT, "variant", 0, VALUE_TEXT, "ID", NULL, false, "Running", CLI_RUN,
     "Run this variant. Default: the newest compiled one that fits the execution provider; when none does, one compiled just "
     "in time, once; without --ep the source."},
    {OPT_INPUT, "input", 0, VALUE_PAIR, "NAME=FILE.npy", NULL, true, "Running", CLI_RUN,
     "Take input NAME from a file. May be repeated."},
    {OPT_RANDOM, "random", 0, VALUE_NUMBER, "SEED", NULL, false, "Running", CLI_RUN,
     "Make up every input that was not given; the same SEED gives the same values everywhere. Floats are uniform in [-1, 1); integers in 0 "
     "to 99, or 0 and 1 where the input's name has 'mask' or 'type' in it; booleans and strings accordingly."},
    {OPT_DIM, "dim", 0, VALUE_PAIR, "NAME=N", NULL, true, "Running", CLI_RUN,
     "Size of a dynamic dimension in made-up inputs: NAME is the dimension's name in the model, or INPUT:AXIS. Default: what a given input "
     "has in that place, else 1. May be repeated."},
    {OPT_REPEAT, "repeat", 0, VALUE_NUMBER, "N", NULL, false, "Running", CLI_RUN,
     "After the first run, run N times more and print the latencies: least, 50th, 90th and 99th percentile, greatest."},
    {OPT_COMPARE, "compare", 0, VALUE_FILE, "MODEL.onnx", NULL, false, "Running", CLI_RUN,
     "Run this plaintext model on the CPU execution provider with the same inputs and print, for each output, the largest absolute "
     "difference and whether all bytes are equal. The exit code is 1 when an output differs by more than 1e-5 of its range (greatest "
     "minus least value of the plaintext model's output; its greatest magnitude when all its values are the same)."},
    {OPT_EXPLAIN, "explain", 0, VALUE_NONE, NULL, NULL, false, "Running", CLI_RUN,
     "Print how each encrypted asset reached ONNX Runtime, and why that way."},
    {OPT_LAZY, "lazy", 0, VALUE_NONE, NULL, NULL, false, "Running", CLI_RUN,
     "Decrypt external weights when they are first touched: the session is there at once. ONNX Runtime 1.31 and newer, CPU execution "
     "provider, userfaultfd; --explain says when it could not be done. Switches prepacking off. Weights that were altered end the process "
     "by SIGBUS when they are touched; they are never used."},

    /* run, compiling just in time */
    {OPT_CACHE, "cache", 0, VALUE_FOLDER, "DIR", NULL, false, CACHE, CLI_RUN,
     "Keep what is compiled just in time in DIR, made when missing. It is encrypted like the bundle, for this machine alone. Default: "
     "ortcrypt in XDG_CACHE_HOME or ~/.cache."},
    {OPT_CACHE_MAX, "cache-max", 0, VALUE_NUMBER, "BYTES", NULL, false, CACHE, CLI_RUN,
     "Remove from the cache what was not used for longest, and is not in use, when more than BYTES are in it. Default: 4294967296 (4 GiB)."},
    {OPT_MACHINE_KEY, "machine-key", 0, VALUE_FILE, "FILE", NULL, false, CACHE, CLI_RUN,
     "This machine's key (32 random bytes, mode 0600), made when missing: without it nobody, whatever other keys they have, can put "
     "something into the cache that opens. Default: ortcrypt/machine.key in XDG_DATA_HOME or ~/.local/share."},
    {OPT_NO_CACHE, "no-cache", 0, VALUE_NONE, NULL, NULL, false, CACHE, CLI_RUN,
     "Compile nothing just in time: it is an error when no variant of the bundle fits. With --variant source the execution provider "
     "compiles in memory, each time."},

    /* everywhere */
    {OPT_ORT, "ort", 0, VALUE_FILE, "LIBRARY", NULL, false, ORT, CLI_WITH_ORT | CLI_CHECK_EP,
     "The ONNX Runtime library to use (libonnxruntime.so.X). Default: the file that ORTCRYPT_ORT names, else the system's."},
    {OPT_BRIDGE, "bridge", 0, VALUE_FILE, "LIBRARY", NULL, false, ORT, CLI_WITH_ORT,
     "The bridge to register execution providers behind that do not know this runtime's callbacks (libortcrypt_bridge.so). Default: the "
     "one beside ortcrypt."},
    {OPT_VERBOSE, "verbose", 'v', VALUE_NONE, NULL, NULL, false, ORT, CLI_WITH_ORT,
     "Show ONNX Runtime's own warnings and errors."},
    {OPT_NO_SANDBOX, "no-sandbox", 0, VALUE_NONE, NULL, NULL, false, SANDBOX, CLI_WITH_ORT,
     "Run ONNX Runtime and the execution provider without the sandbox. They could then write plaintext of the model to files, or send it "
     "away, without a word. In the sandbox, which is the default, their threads can write no file and open no connection."},
    {OPT_REQUIRE_SANDBOX, "require-sandbox", 0, VALUE_NONE, NULL, NULL, false, SANDBOX, CLI_WITH_ORT,
     "Refuse (exit code 5) where the kernel cannot make the sandbox, instead of saying so and going on."},
    {OPT_JSON, "json", 0, VALUE_NONE, NULL, NULL, false, GENERAL, CLI_ALL & ~CLI_KEYGEN,
     "Print exactly one JSON object on standard output; after an error it has the member \"error\"."},
    {OPT_HELP, "help", 'h', VALUE_NONE, NULL, NULL, false, GENERAL, CLI_ALL, "Show this."},
    {0}};

const cli_verb CLI_VERBS[] = {
    {"keygen", CLI_KEYGEN, "", 0, "make a new identity and print its recipient",
     "Makes a new age X25519 identity. The recipient (age1...) is public: bundles are encrypted to it. The identity "
     "(AGE-SECRET-KEY-1...) opens them: keep it secret. The file is the one that age-keygen writes, and age can use it.",
     "$ ortcrypt keygen -o key.txt\n"
     "Public key: age1...\n"
     "$ ortcrypt keygen | age -p > key.age\n",
     cmd_keygen},
    {"encrypt", CLI_ENCRYPT, "MODEL.onnx", 1, "encrypt a model and its files into a new bundle",
     "Encrypts an ONNX model, its external data files and --extra files into a new bundle. External data is found as the model names "
     "it, beside the model. Symbolic links are followed. Nothing is left behind when something goes wrong.\n"
     "Who can open the bundle is said by -r, -R, -p or --recipient-command: one of them is needed.",
     "$ ortcrypt encrypt model.onnx -o model.ortc -r age1...\n"
     "$ ortcrypt encrypt model.onnx -o model.ortc -R team.txt --extra tokenizer.json\n"
     "$ ortcrypt encrypt model.onnx -o model.ortc --recipient-command 'age -e -R id_ed25519.pub'\n",
     cmd_encrypt},
    {"compile", CLI_COMPILE, "BUNDLE", 1, "compile a bundle's model with an execution provider",
     "Compiles the model with an execution provider and adds the result to the bundle as a new variant. What the compiler writes is "
     "encrypted as it is written; no plaintext reaches a file. The result is loaded once before it becomes visible. On failure the "
     "bundle is as before.",
     "$ ortcrypt compile model.ortc -i key.txt --ep OrtcryptReference\n"
     "$ ortcrypt compile model.ortc -i key.txt --ep QNNExecutionProvider=libonnxruntime_providers_qnn.so \\\n"
     "    --ep-option backend_type=htp --variant qnn-v73\n"
     "$ ortcrypt compile model.ortc -i key.txt --ep OrtcryptReference -o compiled.ortc --json\n",
     cmd_compile},
    {"run", CLI_RUN, "BUNDLE", 1, "run a model straight from its bundle",
     "Opens the bundle, decrypts into memory, and runs the model. Inputs come from .npy files or are made up; outputs can be written as "
     ".npy files, timed, and compared with the plaintext model.\n"
     "With --ep, a bundle without a fitting compiled variant is compiled once, into a cache outside the bundle, and loaded from there the "
     "next time. The bundle itself is never written to.",
     "$ ortcrypt run model.ortc -i key.txt --input image=cat.npy --output result\n"
     "$ ortcrypt run model.ortc -i key.txt --ep OrtcryptReference --random 1 --dim batch=4 --repeat 100\n"
     "$ ortcrypt run model.ortc -i key.txt --random 1 --compare model.onnx --explain\n"
     "$ ortcrypt run /media/cdrom/model.ortc -i key.txt --ep OrtcryptReference --random 1 --cache /var/cache/models\n",
     cmd_run},
    {"inspect", CLI_INSPECT, "BUNDLE", 1, "show what a bundle holds",
     "Without a key: what anybody can see who has the bundle. With one: the files, variants and labels in it, and who can open it. "
     "Nothing is decrypted but the manifest; `ortcrypt verify` checks the content.",
     "$ ortcrypt inspect model.ortc\n"
     "$ ortcrypt inspect model.ortc -i key.txt\n"
     "$ ortcrypt inspect model.ortc -i key.txt --json | jq .variants\n",
     cmd_inspect},
    {"verify", CLI_VERIFY, "BUNDLE", 1, "check that a bundle is intact, or with a key, authentic",
     "With a key every byte is opened and authenticated. Without one the stored objects are compared with their names: that finds "
     "damage, but proves nothing about who wrote them. Damage ends with exit code 3.",
     "$ ortcrypt verify model.ortc -i key.txt\n"
     "$ ortcrypt verify model.ortc -i key.txt --pin 5f1c... --bundle-id 8a0b...\n",
     cmd_verify},
    {"decrypt", CLI_DECRYPT, "BUNDLE", 1, "give back the original files",
     "Writes the model, its external data and the extra files into a new folder, byte for byte as they were encrypted. Each file is "
     "checked whole before it gets its name; on failure nothing is left. This is the one verb that writes plaintext.",
     "$ ortcrypt decrypt model.ortc -i key.txt -o original\n"
     "$ pass show model-key | ortcrypt decrypt model.ortc -i - -o original\n",
     cmd_decrypt},
    {"eps", CLI_EPS, "", 0, "show the runtime, its execution providers and their routes",
     "Loads ONNX Runtime and lists its execution providers and, for each, which way its compiled data takes through the encrypting "
     "callbacks: native, bridged, unproven (then compile tries it out first), or none (then compile refuses it). Then the functions that not every version has: where this one "
     "has them, how that was checked, and what is lost without them.",
     "$ ortcrypt eps\n"
     "$ ortcrypt eps --ort /opt/onnxruntime/lib/libonnxruntime.so.1.32.0\n"
     "$ ortcrypt eps --ep QNNExecutionProvider=libonnxruntime_providers_qnn.so --ep-option backend_type=htp --probe --json\n",
     cmd_eps},
    {"check-ep", CLI_CHECK_EP, "LIBRARY", 1, "check that an execution provider keeps the contract of the callbacks",
     "For authors of execution providers, and for those who choose one. Compiles, loads and runs four small models that are no secret, each "
     "time in a program of its own that can write no file, with callbacks that work, fail, or give back wrong data, and once without "
     "callbacks, in a scratch folder. Prints what was seen, one line for each thing that must hold: it holds, fails, or could not be seen "
     "here. Ends with exit code 1 when one fails.",
     "$ ortcrypt check-ep libmy_ep.so --ort libonnxruntime.so.1.32.0\n"
     "$ ortcrypt check-ep libonnxruntime_providers_qnn.so --ep-option backend_type=htp --ep-option soc_model=57 --json\n",
     cmd_check_ep},
    {0}};

const cli_term CLI_ENVIRONMENT[] = {{"ORTCRYPT_ORT", "ONNX Runtime library, where --ort is not given"},
                                    {"ORTCRYPT_IDENTITY", "identity file, where no key is given"},
                                    {"XDG_CACHE_HOME, XDG_DATA_HOME, HOME", "where the cache and the machine's key are, unless options say it"},
                                    {"NO_COLOR", "no colours on the terminal"},
                                    {0}};

const cli_term CLI_EXIT_CODES[] = {{"0", "done"},           {"1", "other error"},
                                   {"2", "wrong usage"},    {"3", "not authentic"},
                                   {"4", "no usable key"},  {"5", "unsupported or no bundle"},
                                   {"6", "file, disk or rights"}, {0}};

const char CLI_ABOUT[] = "Keeps ONNX models encrypted on every machine they pass: a bundle holds the model, its weights and what execution "
                         "providers compile from it, and ONNX Runtime gets the plaintext in memory only.";

const char CLI_FIRST_STEPS[] = "$ ortcrypt keygen -o key.txt\n"
                               "Public key: age1...\n"
                               "$ ortcrypt encrypt model.onnx -o model.ortc -r age1...\n"
                               "$ ortcrypt compile model.ortc -i key.txt --ep OrtcryptReference\n"
                               "$ ortcrypt run model.ortc -i key.txt --ep OrtcryptReference --random 1\n";
