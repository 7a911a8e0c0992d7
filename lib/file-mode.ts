import { statSync } from 'node:fs'

/** Warns of a file with secrets that other users than its owner may read or write. Windows has no such modes. */
export function warnOfMode (what: string, path: string, warn: (message: string) => void): void {
  if (process.platform === 'win32') return
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) !== 0) warn(`the ${what} file ${path} is open to others than its owner (mode ${mode.toString(8).padStart(4, '0')}): chmod 600 it`)
}
