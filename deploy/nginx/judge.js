// Asks oauth-server gateway --judge about a token request: njs 0.7 or newer, used by judge.conf.

// judge answers a token request that may not pass, and sends every other on to @idp. njs calls it when nginx has read the
// whole body.
async function judge(r) {
    // A preflight of CORS has no parameters. Some servers take them with any method.
    if (['GET', 'HEAD', 'OPTIONS'].includes(r.method) && !r.variables.args && !r.requestText) {
        r.internalRedirect('@idp');
        return;
    }
    // The judge does not see the query, which some servers add to the body (RFC 6749, 3.2). A token request is a form, and
    // what is none is refused here, as most token endpoints do.
    if (r.variables.args) {
        refuse(r, 'Parameters belong in the body, not in the query.');
        return;
    }
    if (!/^(application\/x-www-form-urlencoded\s*(;.*)?)?$/i.test(r.variables.content_type || '')) {
        refuse(r, 'The content type must be application/x-www-form-urlencoded.');
        return;
    }

    // Without the option body the subrequest has that of the request, wherever nginx has put it. Its method would be GET.
    const answer = await r.subrequest('/judge', { method: 'POST' });
    switch (answer.status) {
    case 200:
        r.variables.judge_limits = answer.headersOut['RateLimit'] || '';
        r.variables.judge_policies = answer.headersOut['RateLimit-Policy'] || '';
        r.internalRedirect('@idp');
        return;
    case 502: // nginx says so, when the judge is away
    case 504:
        r.error(`the judge does not answer (${answer.status}): the token request passes uncounted`);
        r.internalRedirect('@idp');
        return;
    }
    ['Retry-After', 'RateLimit', 'RateLimit-Policy'].concat(shared).forEach(name => {
        if (answer.headersOut[name]) {
            r.headersOut[name] = answer.headersOut[name];
        }
    });
    reply(r, answer.status, answer.responseText);
}

// shared are the fields with which a script of another site may read an answer.
const shared = ['Access-Control-Allow-Origin', 'Access-Control-Allow-Credentials', 'Access-Control-Expose-Headers', 'Vary'];

// near judges a request with a path that some servers lead to the token endpoint, if it may ask for a token. Others, such as
// those to an endpoint beneath it, pass.
async function near(r) {
    const kind = r.variables.content_type || '';
    const unreadable = r.requestText && (r.headersIn['Content-Encoding'] ||
        /charset[\s*="']*(?!(utf-?8|us-ascii|iso-8859-|windows-125)|[\s*="'])/i.test(kind));
    if (unreadable || grantType.test((r.variables.args || '') + '&' + (r.requestText || ''))) {
        await judge(r);
        return;
    }
    r.internalRedirect('@idp');
}

// grantType finds the name of the parameter as some server reads it: in any case of letters, percent-encoded, escaped as in
// JSON, with what PHP makes an underscore, or in UTF-16. It also finds what hides the name of a part of a multipart body: pieces
// (RFC 2231) and encoded words (RFC 2047).
const grantType = new RegExp('grant_type'.split('').map(spelled).join('') + '(?![a-z0-9_-])|\\bname\\*[0-9]|=\\?[^?\\s]+\\?[bq]\\?', 'i');

function spelled(c) {
    const chars = c === '_' ? '_ .+['.split('') : [c, c.toUpperCase()];
    const codes = chars.filter(x => x !== '+').map(x => x.charCodeAt(0).toString(16)).join('|');
    return `\\0*(?:[\\\\]?[${chars.join('')}]|%(?:${codes})|[\\\\%]u00(?:${codes}))`;
}

function refuse(r, description) {
    r.headersOut['Vary'] = 'Origin';
    r.headersOut['Access-Control-Allow-Origin'] = r.headersIn['Origin'] || '*';
    if (r.headersIn['Origin']) {
        r.headersOut['Access-Control-Allow-Credentials'] = 'true';
    }
    reply(r, 400, JSON.stringify({ error: 'invalid_request', error_description: description }));
}

function reply(r, status, body) {
    r.headersOut['Content-Type'] = 'application/json';
    r.headersOut['Cache-Control'] = 'no-store';
    r.return(status, body);
}

export default { judge, near };
