import { toggle, value } from './args.ts'
import type { Commands } from './command.ts'

export const testingCommands: Commands = {
  testing: {
    summary: 'Serve the testing kit on an in-memory store. For test suites in other languages.',
    example: 'testing --port 4000',
    flags: {
      port: value('PORT', 'Port of 127.0.0.1 to listen on; a free one by default.'),
      'until-stdin-ends': toggle('Also stop when stdin ends, as it does when the suite that started this ends.')
    },
    async runAlone ({ args }) {
      const port = args.integer('port', { minimum: 0, maximum: 65_535 })
      const { runTesting } = await import('../testing/serve.ts')
      await runTesting(['--port', String(port ?? 0), ...(args.has('until-stdin-ends') ? ['--until-stdin-ends'] : [])])
    }
  }
}
