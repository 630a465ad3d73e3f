package abi

import "strings"

// A library's name is a file's name in several languages, too: NAME.h, python/NAME.py, go/NAME.go. There it can stand
// in for a file that others ask for by the same name, or mean something of itself.

// cHeaders are headers of C, POSIX and CUDA: with the library's directory on the include path, #include <string.h>
// would find that of a library called string.
var cHeaders = wordSet(`
aio alloca arpa assert byteswap complex cpio crypt cublas cuda cuda_bf16 cuda_fp16 cuda_fp8 cuda_runtime cudnn curand
ctype dirent dlfcn elf endian err errno error execinfo fcntl features fenv float fmtmsg fnmatch ftw getopt glob grp
iconv inttypes iso646 langinfo libgen limits link locale malloc math mcheck memory monetary mqueue ndbm netdb nl_types
nvrtc nvtx poll pthread pty pwd regex resolv sched search semaphore setjmp shadow signal spawn stdalign stdarg
stdatomic stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string strings stropts syslog tar termios tgmath
threads time uchar ucontext ulimit unistd utime utmpx values wait wchar wctype wordexp`)

// pythonModules are those of Python's standard library and those that the bindings may import: a module of the same
// name in front of it on the path would be taken for it.
var pythonModules = wordSet(`
abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 calendar cmath cmd code codecs codeop
collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg cProfile csv ctypes curses
cupy dataclasses datetime dbm decimal difflib dis doctest email encodings ensurepip enum errno faulthandler fcntl
filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip
hashlib heapq hmac html http imaplib importlib inspect io ipaddress itertools jax json keyword linecache locale
logging lzma mailbox marshal math mimetypes mmap modulefinder multiprocessing netrc ntpath nturl2path numbers numpy
opcode operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint
profile pstats pty pwd py_compile pyclbr pydoc queue quopri random re readline reprlib resource rlcompleter runpy
sched secrets select selectors setuptools shelve shlex shutil signal site smtplib socket socketserver sqlite3
sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess symtable sys sysconfig
syslog tabnanny tarfile tempfile termios textwrap threading time timeit tkinter token tokenize tomllib torch trace
traceback tracemalloc tty turtle types typing unicodedata unittest urllib uuid venv warnings wave weakref webbrowser
winreg winsound wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo`)

// goNames cannot be names of packages: "C" is cgo's, and init must be a function.
var goNames = wordSet(`C init unsafe`)

// goEnds are the last parts of names by which the go command leaves files out: those of tests, systems and processors.
var goEnds = wordSet(`
test aix android darwin dragonfly freebsd hurd illumos ios js linux nacl netbsd openbsd plan9 solaris wasip1 windows
zos unix 386 amd64 amd64p32 arm armbe arm64 arm64be loong64 mips mipsle mips64 mips64le mips64p32 mips64p32le ppc
ppc64 ppc64le riscv riscv64 s390 s390x sparc sparc64 wasm`)

// taken reports whether a name is that of something else which users of a library need.
func taken(name string) bool {
	return reserved[name] || cHeaders[name] || pythonModules[name] || goNames[name]
}

// endsForGo reports whether the go command would leave out a file of this name on some systems.
func endsForGo(name string) bool {
	at := strings.LastIndexByte(name, '_')
	return at >= 0 && goEnds[name[at+1:]]
}
