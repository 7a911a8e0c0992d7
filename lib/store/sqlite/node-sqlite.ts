import type * as Sqlite from 'node:sqlite'

/**
 * Loads node:sqlite without a warning. Node 24.7 warns in every thread that it is experimental, which would be most of a command's
 * output.
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

export const { DatabaseSync } = load()
