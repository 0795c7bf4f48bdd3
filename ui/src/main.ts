import "./style.css"; document.title="lull";
