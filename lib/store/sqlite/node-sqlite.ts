import type * as Sqlite from 'node:sqlite'

/**
 * Loads node:sqlite without a warning. Node 22 warns in every thread that it is experimental, which would be most of a command's
 * output. The tests run on that release too.
 */
function load (): typeof Sqlite {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    const sqlite = process.getBuiltinModule('node:sqlite')
    // Old releases of Node have none, or only with a flag.
    if (sqlite === undefined) throw new Error(`fastify-identity needs Node 22.19 or later, and this is Node ${process.versions.node}`)
    return sqlite
  } finally {
    process.emitWarning = emitWarning
  }
}

export const { DatabaseSync } = load()
