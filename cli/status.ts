import { readStatus } from '../lib/status/status.ts'
import { HeldCounter } from '../lib/status/held.ts'
import { toJudged } from '../plugins/status.ts'
import type { Status } from '../schemas/status.ts'
import { toggle } from './args.ts'
import type { Commands } from './command.ts'
import { checkStart } from './process/check-start.ts'
import { toCell } from './output.ts'
import { toAddresses } from './service-url.ts'

const list = (title: string, entries: readonly { text: string }[]): string[] =>
  entries.length === 0 ? [] : ['', title, ...entries.map(({ text }) => `  - ${toCell(text)}`)]

function writeStatus ({ version, engine, ready, reason, attention, next }: Status): string {
  const lines = [
    `fastify-identity ${version} on ${engine}: ${ready ? 'the database reads and writes' : `not ready, ${reason}`}`,
    ...(attention.length === 0 ? ['Nothing needs attention.'] : list('What needs attention', attention)),
    ...list('What to set up next', next)
  ]
  return `${lines.join('\n')}\n`
}

export const statusCommands: Commands = {
  status: {
    summary: 'Show what needs attention now, and what to set up next. As the database and the environment of this command say.',
    example: 'status --held',
    flags: { held: toggle('Also count the people whom upstreams with only hold, and who may be shut out. Reads every user.') },
    creates: false,
    async run ({ services, config, args, json, stdout }) {
      const { store, work, secretEnds, roles } = services
      const judged = toJudged(checkStart(config), toAddresses(config))
      const held = args.has('held') ? await new HeldCounter({ store, upstreams: config.services.upstreams ?? [], roles, now: Date.now }).count() : undefined
      const status = await readStatus({ store, work, secretEnds, judged, held, checkReadiness: async () => await store.ping() })
      stdout.write(json ? `${JSON.stringify(status)}\n` : writeStatus(status))
    }
  }
}
