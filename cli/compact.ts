import { findDatabase } from './backup.ts'
import type { Commands } from './command.ts'

export const compactCommands: Commands = {
  compact: {
    summary: 'Return unused disk space of the SQLite database. Stop the service first.',
    example: 'compact',
    flags: {},
    async runConfigured ({ stderr, json, signal }, config) {
      const { compact } = await import('../lib/maintenance/compact.ts')
      const database = await findDatabase(config)
      const onProgress = (share: number) => { if (!json) stderr.write(`fastify-identity: ${Math.floor(share * 100)} %\n`) }
      const { before, after } = await compact(database, { onProgress, signal })
      return { database, bytes_before: before, bytes_after: after }
    }
  }
}
