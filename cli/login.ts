import { LOGIN_CLIENT_ID } from '../lib/bootstrap.ts'
import { UsageError } from './args.ts'
import type { Commands } from './command.ts'
import { printRecord } from './output.ts'

/** Scopes of a token for everyday administration. */
const LOGIN_SCOPES = ['account:write', 'clients:write', 'users:write']

export const loginCommands: Commands = {
  login: {
    summary: 'Sign in at a running service, in any browser, and print the tokens.',
    flags: {
      issuer: { type: 'string', value: 'URL', text: 'URL of the service; http://127.0.0.1:3000 by default.' },
      client: { type: 'string', value: 'ID', text: `A public client with the device grant; ${LOGIN_CLIENT_ID}, which bootstrap creates, by default.` },
      scope: { type: 'string', value: 'SCOPE', multiple: true, text: `A scope; may be repeated. ${LOGIN_SCOPES.join(', ')} by default.` }
    },
    async runAlone ({ args, json, stdout, stderr, signal }) {
      const scopes = args.all('scope')
      const issuer = args.optional('issuer') ?? 'http://127.0.0.1:3000'
      if (!/^https?:\/\//.test(issuer) || !URL.canParse(issuer)) throw new UsageError('--issuer: must be an http or https URL')
      const { loginByDevice } = await import('./device-login.ts')
      const { access_token, expires_in, refresh_token, scope } = await loginByDevice({
        issuer,
        client_id: args.optional('client') ?? LOGIN_CLIENT_ID,
        scope: (scopes.length > 0 ? scopes : LOGIN_SCOPES).join(' '),
        signal,
        // On stderr, since a program may read stdout.
        showCode: (code) => stderr.write(`Go to ${code.verification_uri} and enter ${code.user_code}\n`)
      })
      printRecord({ stdout, json }, { access_token, expires_in, ...(refresh_token !== undefined && { refresh_token }), ...(scope !== undefined && { scope }) })
    }
  }
}
