import type { FastifyInstance } from 'fastify'
import { openOutbound } from '../lib/identity.ts'
import { toIssuer } from '../lib/issuer.ts'
import type { Judged } from '../lib/status/capabilities.ts'
import type { HeldCounter } from '../lib/status/held.ts'
import type { Setting, Status } from '../schemas/status.ts'
import type { IdentityOptions } from './identity.ts'
import type { Prepared } from './prepare.ts'

/** What the service can do by its options. @param parts.url its issuer, or the address that it listens on */
export function toJudged ({ options, passkeys, server }: Prepared, { url, metrics }: Pick<Judged, 'url' | 'metrics'>): Judged {
  return { options, passkeys, server, url, metrics, checkUrl: openOutbound(options).checkUrl }
}

interface StatusParts {
  given: IdentityOptions
  prepared: Prepared
  checkReadiness: () => Promise<void>
  /** Absent: there is no authorization server. */
  getIssuer?: (() => URL) | undefined
}

/** What administrators see of the service itself. Nothing of it is loaded before somebody asks. */
export interface ServiceStatus {
  /** @param isHeldCounted whether to count the people whom upstreams with `only` hold */
  read (isHeldCounted: boolean): Promise<Status>
  listSettings (): Promise<Setting[]>
}

export function openStatus (app: FastifyInstance, { given, prepared, checkReadiness, getIssuer }: StatusParts): ServiceStatus {
  const { options, server } = prepared
  let held: HeldCounter | undefined
  app.addHook('preClose', async () => await held?.close())
  return {
    async read (isHeldCounted) {
      const { store, work, secretEnds } = app.identity
      const [{ readStatus }, { HeldCounter }] = await Promise.all([import('../lib/status/status.ts'), import('../lib/status/held.ts')])
      held ??= new HeldCounter({ store, upstreams: options.upstreams, roles: options.roles, now: options.now ?? Date.now })
      const { metrics } = options
      const judged = toJudged(prepared, {
        url: getIssuer === undefined ? '' : toIssuer(getIssuer()), metrics: metrics === undefined ? undefined : { first: metrics, last: metrics }
      })
      return await readStatus({ store, work, secretEnds, checkReadiness, judged, held: isHeldCounted ? await held.count() : undefined })
    },

    async listSettings () {
      if (options.listSettings !== undefined) return await options.listSettings()
      const { listOptions } = await import('../lib/status/options.ts')
      return listOptions({ ...given }, { ...options, oidc: server && server.options })
    }
  }
}
