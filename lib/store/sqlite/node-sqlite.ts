import type * as Sqlite from 'node:sqlite'

/**
 * node:sqlite. Node 22 calls it experimental by a warning in every thread that loads it, which would be most of what a command
 * prints; the tests run on that release too.
 */
function load (): typeof Sqlite {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:sqlite')
  } finally {
    process.emitWarning = emitWarning
  }
}

export const { DatabaseSync, backup } = load()
