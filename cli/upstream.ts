import { defined } from '../lib/defined.ts'
import { openOutbound } from '../lib/identity.ts'
import { nameUpstream, toLogoutUri } from '../lib/upstreams/kinds.ts'
import { subject } from './args.ts'
import type { Commands } from './command.ts'

export const upstreamCommands: Commands = {
  'upstream test': {
    summary: 'Check whether a sign-in provider can be reached. Also what it says of itself. Nobody is signed in.',
    example: 'upstream test google',
    flags: { id: subject('ID', 'Its id in IDENTITY_UPSTREAMS_FILE.') },
    async runConfigured ({ args }, { oidc, services: { upstreams = [], ...options } }) {
      const id = args.required('id')
      const upstream = upstreams.find((one) => one.id === id)
      if (upstream === undefined) {
        throw new Error(`--id: no such upstream${upstreams.length === 0 ? '' : `, there are ${upstreams.map((one) => one.id).join(', ')}`}`)
      }
      const { testUpstream } = await import('../lib/upstreams/upstreams.ts')
      const outbound = openOutbound(options)
      try {
        await testUpstream(upstream, { outbound, now: Date.now })
      } finally {
        await outbound.close()
      }
      const uri = toLogoutUri(upstream, oidc === false ? undefined : oidc.issuer)
      return defined({ id, kind: upstream.kind, name: nameUpstream(upstream), reachable: true, backchannel_logout_uri: uri })
    }
  }
}
