import { statSync } from 'node:fs'

/**
 * Warns of a file with secrets that other users than its owner may read or write. A file that nobody may write, such as one of mode 444, may be
 * readable: so a secret is mounted into a container whose user has another id, from a folder that protects it. Windows has no such modes.
 */
export function warnOfMode (what: string, path: string, warn: (message: string) => void): void {
  if (process.platform === 'win32') return
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o222) === 0) return
  if ((mode & 0o077) !== 0) warn(`the ${what} file ${path} is open to others than its owner (mode ${mode.toString(8).padStart(4, '0')}): chmod 600 it`)
}
