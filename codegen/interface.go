package codegen

import (
	"encoding/json"
	"fmt"
	"strings"
)

// buildInfo is what NAME_build_info tells; the compiler that builds the library adds its part by macros.
func (l *layout) buildInfo() string {
	kinds := make([]string, len(l.segments))
	for i, t := range l.segments {
		kinds[i] = t.kind.String()
	}
	data, err := json.Marshal(struct {
		Schema    int      `json:"schema"`
		Name      string   `json:"name"`
		Model     string   `json:"model"`
		Version   string   `json:"rammerc"`
		Device    string   `json:"device"`
		Segments  []string `json:"segments"`
		ROps      int      `json:"roperators"`
		RTasks    int      `json:"rtasks"`
		Instances int      `json:"instances"`
		Weights   int64    `json:"weights_bytes"`
		Arena     int64    `json:"arena_bytes"`
	}{1, l.opt.Name, l.opt.Model, l.opt.Version, l.plan.Spec.Name, kinds, len(l.ops), l.steps(), len(l.instances),
		l.weightBytes, l.plan.ArenaLen})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(data)
}

// interfaceCode writes the functions of the C interface over rt::Context. The model's tables are in the
// unnamed namespace, or, where several share the program, in a namespace of their own in that one.
func (s *source) interfaceCode() {
	info := strings.TrimSuffix(s.buildInfo(), "}")
	in, open, end := "", "", ""
	if s.owner != nil {
		in, open, end = s.opt.Name+"::", "namespace "+s.opt.Name+" {\n", "}  // namespace "+s.opt.Name+"\n"
	}
	context, model := "rt::Context<Program>", in+"model"
	if s.general() {
		context, model = "GeneralContext", model+", "+in+"general"
	}
	text := strings.ReplaceAll(interfaceText, "@CONTEXT@", context)
	if s.general() {
		text = strings.Replace(text, "using Context", generalContext+"\nusing Context", 1) + generalFunctions
	}
	if s.repeats() {
		text += generateFunction
	}
	if s.keeps() {
		text += stateFunctions
	}
	s.printf("%s", strings.NewReplacer(
		"@MODEL@", model, "@MODEL_TABLES@", in+"model", "@DIMS_INFO@", strings.Join(quotes(s.dimsInfo(), 80), "\n    "),
		"@OUTPUTS@", fmt.Sprint(len(s.visible())), "@NAME@", s.opt.Name, "@IN@", in, "@OPEN@", open, "@CLOSE@", end,
		"@BUILD_INFO@", strings.Join(quotes(info, 80), "\n    "),
	).Replace(text))
}

const interfaceText = `// The C interface of @NAME@.h. No exception leaves it.
namespace {
@OPEN@
using Context = @CONTEXT@;
thread_local std::string create_error;

const char build_info[] =
    @BUILD_INFO@
#if defined(RT_DEBUG)
    ",\"debug\":true"
#else
    ",\"debug\":false"
#endif
#if defined(RT_TRACE)
    ",\"trace\":true"
#else
    ",\"trace\":false"
#endif
    ",\"engine\":\"" RT_ENGINE "\"}";

const @NAME@_io io = {model.input_count, input_tensors, @OUTPUTS@, output_tensors};

rt::Options options_of(const @NAME@_options* o) {
  rt::Options r;
  if (!o) return r;
  if (o->size != sizeof *o) {
    throw rt::Error{rt::kBadArgument, "options.size is not sizeof(@NAME@_options)"};
  }
  if (o->device < 0) {
    throw rt::Error{rt::kBadArgument, "options.device is negative; it is a CUDA device + 1, or 0 for the current one"};
  }
  if (o->mode < rt::kAutoMode || o->mode > rt::kWavesMode) {
    throw rt::Error{rt::kBadArgument, "options.mode is unknown"};
  }
  r.weights_path = o->weights_path;
  r.device = o->device - 1;
  r.mode = o->mode;
  r.seed = o->emu_seed;
  r.max_resident = o->emu_max_blocks;
  r.patience_ns = o->watchdog_ns;
  r.delays = o->delay_seed;
#if !defined(RT_DEBUG)
  if (r.delays) {
    throw rt::Error{rt::kBadArgument, "options.delay_seed is for debug builds, which are made with -DRT_DEBUG"};
  }
#endif
  return r;
}

// Without a context there is none to keep a message in.
int no_context() {
  return rt::guarded([] { throw rt::Error{rt::kBadArgument, "ctx is a null pointer"}; },
                     [](const std::string& text) { create_error = text; });
}

Context& context_of(const @NAME@_ctx* ctx) {
  return *reinterpret_cast<Context*>(const_cast<@NAME@_ctx*>(ctx));
}

@CLOSE@}  // namespace

extern "C" {

int @NAME@_create(const @NAME@_options* options, @NAME@_ctx** ctx) {
  if (ctx) *ctx = nullptr;
  return rt::guarded(
      [&] {
        if (!ctx) throw rt::Error{rt::kBadArgument, "ctx is a null pointer"};
        *ctx = reinterpret_cast<@NAME@_ctx*>(new @IN@Context(@MODEL@, @IN@options_of(options)));
      },
      [](const std::string& text) { @IN@create_error = text; });
}

int @NAME@_run(@NAME@_ctx* ctx, const void* const in[], void* const out[], @NAME@_memory memory) {
  if (!ctx) return @IN@no_context();
  return rt::guarded(
      [&] {
        if (memory != @NAME@_HOST && memory != @NAME@_DEVICE) {
          throw rt::Error{rt::kBadArgument, "memory is unknown"};
        }
        @IN@context_of(ctx).run(in, out, memory == @NAME@_HOST);
      },
      [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

int @NAME@_run_async(@NAME@_ctx* ctx, void* stream, const void* const in[], void* const out[]) {
  if (!ctx) return @IN@no_context();
  return rt::guarded(
      [&] { @IN@context_of(ctx).run_async(static_cast<rt::dev::Stream>(stream), in, out); },
      [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

void @NAME@_destroy(@NAME@_ctx* ctx) {
  if (ctx && !@IN@context_of(ctx).inherited()) delete &@IN@context_of(ctx);
}

const char* @NAME@_last_error(const @NAME@_ctx* ctx) {
  return ctx ? @IN@context_of(ctx).error() : @IN@create_error.c_str();
}

const @NAME@_io* @NAME@_io_info(void) { return &@IN@io; }

const char* @NAME@_build_info(void) { return @IN@build_info; }

const char* @NAME@_run_info(const @NAME@_ctx* ctx) {
  return ctx ? @IN@context_of(ctx).info() : "{}";
}

int @NAME@_trace(@NAME@_ctx* ctx, void* buffer, size_t* bytes) {
  if (!ctx) return @IN@no_context();
  return rt::guarded(
      [&] {
        if (!bytes) throw rt::Error{rt::kBadArgument, "bytes is a null pointer"};
        @IN@context_of(ctx).trace(buffer, bytes);
      },
      [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

}  // extern "C"
`
