import type { Commands } from './command.ts'
import { printRecord } from './output.ts'

export const loginCommands: Commands = {
  login: {
    summary: 'Sign in at a running service, in any browser, and print the tokens.',
    flags: {
      issuer: { type: 'string', value: 'URL', text: 'URL of the service; http://127.0.0.1:3000 by default.' },
      client: { type: 'string', value: 'ID', required: true, text: 'A public client.' },
      scope: { type: 'string', value: 'SCOPE', multiple: true, text: "A scope; may be repeated. All of the client's scopes by default." }
    },
    async runAlone ({ args, json, stdout, stderr, signal }) {
      const { loginByDevice } = await import('./device-login.ts')
      const { access_token, expires_in, refresh_token, scope } = await loginByDevice({
        issuer: args.optional('issuer') ?? 'http://127.0.0.1:3000',
        client_id: args.required('client'),
        scope: args.all('scope').join(' '),
        signal,
        // On stderr, since a program may read stdout.
        showCode: (code) => stderr.write(`Go to ${code.verification_uri} and enter ${code.user_code}\n`)
      })
      printRecord({ stdout, json }, { access_token, expires_in, ...(refresh_token !== undefined && { refresh_token }), ...(scope !== undefined && { scope }) })
    }
  }
}
