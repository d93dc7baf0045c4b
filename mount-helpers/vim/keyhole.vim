" Keyhole: vim and nvim keep nothing elsewhere of a file in a mount, or of a symbolic link that leads into one: no backup
" beside the link, no undo file, and for the rest of the session no registers and no history in viminfo or shada.
"
" Installed with Keyhole as a plugin. `let g:loaded_keyhole = 1` in a vimrc turns it off.

if exists('g:loaded_keyhole') || &compatible || !filereadable('/proc/self/mounts')
  finish
endif
let g:loaded_keyhole = 1

" Whether the path lies in a mount of Keyhole, after symbolic links.
function! s:IsInMount(path) abort
  let file = resolve(a:path)
  for line in readfile('/proc/self/mounts')
    let fields = split(line, ' ')
    if get(fields, 2, '') ==# 'fuse.keyhole'
      " Spaces and backslashes are written in octal there.
      let mount = substitute(fields[1], '\\\(\o\o\o\)', '\=nr2char(str2nr(submatch(1), 8))', 'g')
      if stridx(file, mount . '/') == 0
        return 1
      endif
    endif
  endfor
  return 0
endfunction

function! s:Protect(path) abort
  if a:path ==# '' || !s:IsInMount(a:path)
    return
  endif
  let pattern = escape(a:path, '*?{}[]\,')
  if index(split(&backupskip, '\\\@<!,'), pattern) < 0
    let &backupskip = &backupskip ==# '' ? pattern : &backupskip . ',' . pattern
  endif
  setlocal noundofile
  if exists('+shada')
    set shada=
  else
    set viminfo=
  endif
endfunction

augroup keyhole
  autocmd!
  autocmd BufNewFile,BufReadPre,BufFilePost,BufWritePre,FileWritePre * call s:Protect(expand('<afile>:p'))
augroup END
